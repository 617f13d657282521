// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Samples of round-trip times and losses of chosen sockets, whatever their control. Nothing of a
 * socket is changed.
 *
 * The tracepoint tcp:tcp_probe is passed by each segment that comes to an established connection,
 * before it is processed. So what is read there is what the acknowledgement before left: RACK keeps
 * when the newest acknowledged segment was sent and its round-trip time (RFC 8985, section 6.2),
 * and their sum is when it was acknowledged. If that is not when something was last delivered, the
 * last acknowledgement filled a hole, and has no round-trip time. RACK takes none of a
 * retransmission that is shorter than the smallest.
 *
 * What is sent with nothing in flight sets that time anew, and that of the first sending to the
 * same (tcp_rate_skb_sent()). Then the sum tells alone when the last flight ended.
 *
 * A socket is sampled at most once in NR_SAMPLE_US, where the clock passes from one such interval
 * to the next, which takes no state of the socket.
 */
#include "nr_kernel.h"

#define NR_SAMPLE_US 2000
#define NR_SAMPLED_MAX 1024
#define NR_SAMPLES_BYTES (1 << 21)

/* Which, by SO_COOKIE, and the low word of at_us of the last sample. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NR_SAMPLED_MAX);
	__type(key, __u64);
	__type(value, __u32);
} nr_sampled SEC(".maps");

/* Read at intervals by user space: nobody is woken. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, NR_SAMPLES_BYTES);
} nr_samples SEC(".maps");

/* As of `at_us`. */
struct nr_rtt_sample {
	__u64 cookie;
	__u64 at_us;	 /* CLOCK_MONOTONIC, of the last acknowledgement that delivered something */
	__u32 rtt_us;	 /* 0: it has none */
	__u32 delivered; /* packets since the connection began */
	__u32 lost;
	__u32 app_limited; /* 1: by the application */
};

/* Samples for which the buffer had no room. */
__u64 missed;

SEC("tp_btf/tcp_probe")
int BPF_PROG(nr_sample, struct sock *sk)
{
	__u64 cookie = sk->__sk_common.skc_cookie.counter;
	struct nr_rtt_sample *s;
	struct tcp_sock *tp;
	__u64 at_us, acked_us;
	__u32 *last;

	/* One that user space has never listed has no cookie. */
	if (!cookie)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	at_us = tp->delivered_mstamp;
	acked_us = tp->rack.mstamp + tp->rack.rtt_us;
	if (tp->first_tx_mstamp == at_us)
		at_us = acked_us;
	if (at_us / NR_SAMPLE_US == bpf_ktime_get_ns() / 1000 / NR_SAMPLE_US)
		return 0;
	last = bpf_map_lookup_elem(&nr_sampled, &cookie);
	/* Segments of data that acknowledge nothing new come here, too. */
	if (!last || *last == (__u32)at_us)
		return 0;
	s = bpf_ringbuf_reserve(&nr_samples, sizeof(*s), 0);
	if (!s) {
		__sync_fetch_and_add(&missed, 1);
		return 0;
	}
	*last = (__u32)at_us;
	s->cookie = cookie;
	s->at_us = at_us;
	s->rtt_us = acked_us == at_us ? tp->rack.rtt_us : 0;
	s->delivered = tp->delivered;
	s->lost = tp->lost;
	s->app_limited = !!tp->app_limited;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
