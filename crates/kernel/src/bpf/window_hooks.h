/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hooks of a control whose law is a window law (law.h); part of control.bpf.c.
 *
 *   .pkts_acked   keeps the delays; ACKED during recovery, when .cong_avoid is not called
 *   .cong_avoid   ACKED
 *   .ssthresh     RECOVERY or ECN, also just before a TIMEOUT: the law reduces once
 *   .set_state    TIMEOUT, RECOVERED
 *   .undo_cwnd    UNDO
 *   .cwnd_event   RESTART
 *   .sndbuf_expand
 *
 * Recovery (PRR) towards ssthresh and idle restart are the stack's; the next ACKED reports the
 * result to the law.
 */
#ifndef NR_WINDOW_HOOKS_H
#define NR_WINDOW_HOOKS_H

/*
 * The send buffer, in windows of the largest that the subflow had: the stack's, and of a coupled
 * subflow. A connection has the sum of its subflows', for all that is out on the others while one
 * repairs a loss (RFC 6182, 5.3). One that is coupled from its start on did not have the window of
 * a slow start, and with the stack's buffer five paths had 0.9 of their throughput
 * (docs/results/kernel.md).
 */
#define NR_SNDBUF_WINDOWS 2
#define NR_SNDBUF_COUPLED 4

/* Has a window of data been acknowledged since this last returned true? */
static __always_inline bool round_over(struct sock *sk, nr_u32 ack)
{
	struct nr_sock *s = nr_sk(sk);

	if ((nr_s32)(ack - s->round_end) <= 0)
		return false;
	s->round_end = round_mark(tcp_sk(sk));
	return true;
}

/*
 * If the local queue drops an acknowledgement, __tcp_transmit_skb() reduces the window at the time
 * of the last segment. Processing an acknowledgement or a timer takes less than NR_STALE_US.
 */
#define NR_STALE_US 1000

/*
 * A congestion event. Of losses the first segment that is out is one. Marks have just been counted;
 * without any a probe has repaired a loss or the local queue is full, and nobody knows when that
 * was sent.
 */
static __always_inline struct nr_event *fill_reduction(struct sock *sk, struct nr_entry *e)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_event *ev = fill(sk, e, NR_RECOVERY);
	nr_u64 now_us = bpf_ktime_get_ns() / 1000;

	if (now_us > ev->now_us + NR_STALE_US)
		ev->now_us = now_us;
	if (tp->lost_out) {
		ev->sent_us = tcp_first_sent_us(sk);
	} else if (tp->ecn_flags & TCP_ECN_OK) {
		ev->kind = NR_ECN;
		if (tp->delivered_ce != nr_sk(sk)->marked)
			ev->sent_us = tp->rack.mstamp;
	}
	return ev;
}

/* The same right after the stack called nr_ssthresh(): the law's value holds. */
static __always_inline void repair_ssthresh(struct sock *sk, struct nr_entry *e)
{
	struct nr_path *path = line(e, nr_sk(sk)->slot);
	struct nr_event *ev;

	if (tcp_sk(sk)->snd_ssthresh == path->ssthresh)
		return;
	/* If the program was skipped, this is the law's event; a repeated event changes nothing. */
	ev = fill_reduction(sk, e);
	ev->cwnd = path->cwnd;
	ev->ssthresh = path->ssthresh;
	nr_event(sk, e, false);
	tcp_sk(sk)->snd_ssthresh = path->ssthresh;
	count(NR_REPAIRED_THRESH);
}

/* The stack's undo brings its old ssthresh back, also above what the law has cut since. */
static __always_inline void leave_ssthresh(struct sock *sk, struct nr_entry *e)
{
	struct nr_sock *s = nr_sk(sk);
	nr_u32 ssthresh = line(e, s->slot)->ssthresh;

	if (s->undone && tcp_sk(sk)->snd_ssthresh > ssthresh)
		tcp_sk(sk)->snd_ssthresh = ssthresh;
	s->undone = 0;
}

/*
 * If what was sent again is acknowledged, the sample is that of the timestamps, rounded down to a
 * millisecond: of no use beside those of an empty queue. One of a thousand others is left out, too.
 */
static __always_inline bool of_timestamps(const struct tcp_sock *tp, long rtt_us)
{
	if (bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts))
		return false;
	return (nr_u64)rtt_us % 1000 == 0;
}

/*
 * Recovery ends with the window at the stack's ssthresh. A sibling's cut that the law has followed
 * meanwhile holds.
 */
static __always_inline void lower_ssthresh(struct sock *sk, struct nr_entry *e)
{
	nr_u32 ssthresh = line(e, nr_sk(sk)->slot)->ssthresh;

	if (ssthresh < tcp_sk(sk)->snd_ssthresh)
		tcp_sk(sk)->snd_ssthresh = ssthresh;
}

SEC("struct_ops")
void BPF_PROG(nr_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct nr_event *ev;
	struct nr_entry *e;

	if (!of_timestamps(tcp_sk(sk), sample->rtt_us))
		keep_delay(sk, sample->rtt_us);
	if (!tcp_in_cwnd_reduction(sk))
		return;
	e = entry(sk);
	if (!e)
		return;
	ev = fill_acked(sk, e);
	ev->flags |= NR_F_IN_RECOVERY;
	nr_event(sk, e, true);
	lower_ssthresh(sk, e);
}

SEC("struct_ops")
void BPF_PROG(nr_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);
	struct nr_event *ev;
	struct nr_entry *e;
	nr_u32 ssthresh, cwnd;
	bool round = round_over(sk, ack), falls_back;

	e = entry(sk);
	if (!e) {
		if (round && mode(sk) == NR_MODE_FALLBACK && join(sk) == NR_JOINS)
			count(NR_COUPLED_LATER);
		else
			fallback(sk, acked);
		return;
	}
	if (round)
		ensure_detection(e, s->token); /* there may be memory now */
	falls_back = uncoupled(sk, &e->slot[s->slot & (NR_MAX_PATHS - 1)], round);
	if (s->undone)
		leave_ssthresh(sk, e);
	ev = fill_acked(sk, e);
	if (round)
		ev->flags |= NR_F_ROUND_START;
	if (!falls_back && tcp_is_cwnd_limited(tp))
		ev->flags |= NR_F_CWND_LIMITED;
	nr_event(sk, e, true);
	cwnd = line(e, s->slot)->cwnd;
	tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
	leave_cwnd(sk, tp->snd_cwnd);
	ssthresh = line(e, s->slot)->ssthresh;
	if (ssthresh != tp->snd_ssthresh)
		tp->snd_ssthresh = ssthresh;
	if (falls_back)
		fallback(sk, acked);
}

/* Congestion event: return ssthresh; the stack performs the reduction (PRR; cwnd 1 on timeout). */
SEC("struct_ops")
__u32 BPF_PROG(nr_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);
	struct nr_entry *e = entry(sk);
	struct nr_event *ev;

	if (!e)
		return tcp_reno_ssthresh(sk);
	leave_ssthresh(sk, e);
	ev = fill_reduction(sk, e);
	ev->lost = tp->lost - s->lost;
	s->lost = tp->lost;
	nr_event(sk, e, false);
	return line(e, s->slot)->ssthresh;
}

SEC("struct_ops")
void BPF_PROG(nr_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool timeout = new_state == TCP_CA_Loss;
	bool begins = new_state >= TCP_CA_CWR && tcp_ca_state(sk) < TCP_CA_CWR;
	bool ends = new_state <= TCP_CA_Disorder && tcp_in_cwnd_reduction(sk);
	struct nr_event *ev;
	struct nr_entry *e;
	struct nr_path *path;
	nr_u32 most;

	/* After an undo this repairs the window, before anything is sent. */
	e = entry(sk);
	if (!e && mode(sk) == NR_MODE_FALLBACK)
		repair_cwnd(sk, NULL);
	/* Packets too large for the path are retransmitted in this state, at the same window. */
	if (timeout && tp->snd_cwnd > tcp_packets_in_flight(tp) + 1)
		return;
	if (!e) {
		if (begins)
			repair_reno_ssthresh(sk);
		return;
	}
	if (begins)
		repair_ssthresh(sk, e);
	leave_ssthresh(sk, e);
	if (!timeout && !ends)
		return;
	ev = fill(sk, e, timeout ? NR_TIMEOUT : NR_RECOVERED);
	if (timeout && tp->inet_conn.icsk_retransmits) {
		ev->flags |= NR_F_RETRANS;
		ev->state = NR_FAILED;
	}
	nr_event(sk, e, false);
	if (!ends)
		return;
	lower_ssthresh(sk, e);
	/* From CWR the stack has set it before. */
	path = line(e, nr_sk(sk)->slot);
	most = path->cwnd > path->ssthresh ? path->cwnd : path->ssthresh;
	if (most < tp->snd_cwnd)
		tp->snd_cwnd = most;
}

SEC("struct_ops")
__u32 BPF_PROG(nr_undo_cwnd, struct sock *sk)
{
	struct nr_entry *e = entry(sk);
	nr_u32 now = tcp_sk(sk)->snd_cwnd, cwnd;

	if (e) {
		fill(sk, e, NR_UNDO);
		nr_event(sk, e, false);
		cwnd = line(e, nr_sk(sk)->slot)->cwnd;
		nr_sk(sk)->undone = 1;
	} else {
		cwnd = tcp_reno_undo_cwnd(sk);
	}
	if (cwnd < now)
		cwnd = now;
	leave_cwnd(sk, cwnd); /* the stack sets it */
	return cwnd;
}

SEC("struct_ops")
void BPF_PROG(nr_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct nr_event *ev;
	struct nr_entry *e;

	/* A socket that only received and has no slot does not wait for an acknowledgement. */
	if (event == CA_EVENT_TX_START && mode(sk) == NR_MODE_FALLBACK && join(sk) == NR_JOINS)
		count(NR_COUPLED_LATER);
	if (event != CA_EVENT_CWND_RESTART)
		return;
	e = entry(sk);
	if (!e)
		return;
	ev = fill(sk, e, NR_RESTART);
	ev->now_us = bpf_ktime_get_ns() / 1000;
	ev->cwnd = NR_INIT_CWND;
	nr_event(sk, e, false);
}

SEC("struct_ops")
__u32 BPF_PROG(nr_sndbuf_expand, struct sock *sk)
{
	return couples() && mode(sk) == NR_MODE_PATH ? NR_SNDBUF_COUPLED : NR_SNDBUF_WINDOWS;
}

#endif
