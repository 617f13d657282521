/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fields of the kernel's types that we use, relocated at load to the running kernel (CO-RE).
 * Differences between Linux 6.1 and later are handled here:
 *
 *   local_id       8 bits in 6.1, 16 later: read as a bitfield, whose size is relocated
 *   subflow_ctx()  a pointer to read by probe, as 6.1 has no bpf_rdonly_cast
 *   cong_control   has two arguments less in 6.1
 *   links          a struct_ops link exists from 6.4: the objects do without, the loader asks
 */
#ifndef NR_KERNEL_H
#define NR_KERNEL_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#define AF_INET 2
#define ENOENT 2
#define EEXIST 17
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_CA_NAME_MAX 16
#define TCP_CONG_NON_RESTRICTED 1 /* may be the default of other namespaces, too */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
#define TCP_ECN_OK 1
#define TCPCB_EVER_RETRANS 0x80 /* sent again, if only as a probe */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2

/* include/uapi/linux/tcp.h */
enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

/* include/net/tcp.h */
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__s64 counter;
} atomic64_t;

typedef struct refcount_struct {
	atomic_t refs;
} refcount_t;

struct ns_common {
	unsigned int inum;
};

struct netns_ipv4 {
	const struct tcp_congestion_ops *tcp_congestion_control; /* the default */
};

typedef struct {
	__u32 val;
} kuid_t;

struct user_namespace {
	struct user_namespace *parent;
	int level;
	kuid_t owner;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
	struct user_namespace *user_ns;
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	__u8 bytes[16]; /* never accessed by name */
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	refcount_t skc_refcnt; /* 0: the memory is no socket's */
	atomic64_t skc_cookie; /* SO_COOKIE; 0: nobody has asked */
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct rb_node {
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct sk_buff {
	struct rb_node rbnode;
	__u64 skb_mstamp_ns; /* when it was sent last */
	char cb[48];	     /* struct tcp_skb_cb */
};

struct tcp_skb_cb {
	__u8 sacked; /* TCPCB_* */
};

struct sock {
	struct sock_common __sk_common;
	struct rb_root tcp_rtx_queue; /* what is out, by sequence numbers */
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate; /* bytes/s */
	unsigned long sk_max_pacing_rate;
	kuid_t sk_uid;
};

struct inet_connection_sock {
	const struct tcp_congestion_ops *icsk_ca_ops;
	void *icsk_ulp_data;
	__u8 icsk_ca_state : 5;
	__u8 icsk_retransmits;
	struct {
		__u16 rcv_mss;
	} icsk_ack;
	__u64 icsk_ca_priv[13];
};

/* Of the segment that came last. */
struct tcp_options_received {
	__u32 rcv_tsval;
	__u16 saw_tstamp : 1;
	__u16 tstamp_ok : 1; /* negotiated */
};

/* Of the newest segment that was acknowledged, selectively or not (RFC 8985). */
struct tcp_rack {
	__u64 mstamp; /* when it was sent, us */
	__u32 rtt_us;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	__u64 bytes_received;
	__u32 data_segs_out;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 prior_cwnd;
	__u32 snd_ssthresh;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 max_packets_out;
	__u32 lost;
	__u32 delivered;
	__u32 delivered_ce;
	__u64 delivered_mstamp; /* us, when delivered changed last */
	__u64 first_tx_mstamp;	/* us */
	__u32 app_limited;
	struct tcp_rack rack;
	__u32 snd_nxt;
	__u32 write_seq;
	__u32 srtt_us; /* 1/8 us */
	__u64 tcp_mstamp;
	__u64 tcp_clock_cache; /* ns, of the last event */
	__u64 tcp_wstamp_ns;   /* when the next packet may leave, by pacing */
	__u8 is_cwnd_limited : 1;
	__u8 tcp_usec_ts : 1; /* from Linux 6.7 on: timestamps are in us, not in ms */
	__u8 ecn_flags;
	bool is_mptcp;
};

struct list_head {
	struct list_head *next;
};

struct mptcp_subflow_context {
	struct list_head node; /* of mptcp_sock.conn_list */
	__u32 token;	       /* local */
	__u32 request_bkup : 1;
	__u32 mp_capable : 1;
	__u32 mp_join : 1;
	__u32 backup : 1;
	__u32 stale : 1;
	__s16 local_id;
	__u8 remote_id;
	struct sock *tcp_sock;
	struct sock *conn; /* the MPTCP socket */
};

struct mptcp_sock {
	struct list_head conn_list;
	void *first_pending; /* data that no subflow has sent yet */
};

struct bpf_map {
	__u32 max_entries;
};

struct ack_sample {
	__s32 rtt_us;
};

/* Of an acknowledgement: include/net/tcp.h. */
struct rate_sample {
	__u32 prior_delivered; /* tp->delivered when the sample's packet was sent */
	__s32 delivered;       /* since then; negative: no sample */
	long interval_us;      /* in which time; negative: too short to be true */
	long rtt_us;	       /* negative: no sample */
	__u32 acked_sacked;    /* packets newly acknowledged, selectively or not */
	bool is_app_limited;
	bool is_retrans;
};

/* Omitted members are null. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#pragma clang attribute pop

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

/* Every sock of a congestion control is a tcp_sock, and the verifier knows. */
static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* The MPTCP side of a socket, to be read by probe; NULL: plain TCP. */
static __always_inline struct mptcp_subflow_context *subflow_ctx(const struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!bpf_core_field_exists(tp->is_mptcp) || !tp->is_mptcp)
		return NULL;
	return tp->inet_conn.icsk_ulp_data;
}

/* The address of a subflow's MPTCP socket, to be read by probe. */
static __always_inline __u64 mptcp_sk(const struct sock *sk)
{
	struct mptcp_subflow_context *subflow = subflow_ctx(sk);

	return (__u64)BPF_CORE_READ(subflow, conn);
}

/*
 * The local token of a subflow's connection; 0: plain TCP, also a socket that fell back to it,
 * which on the client keeps is_mptcp. For init: there, and not before, both sides know.
 */
static __always_inline __u32 mptcp_token(const struct sock *sk)
{
	struct mptcp_subflow_context *subflow = subflow_ctx(sk);

	if (!subflow || (!BPF_CORE_READ_BITFIELD_PROBED(subflow, mp_capable) &&
			 !BPF_CORE_READ_BITFIELD_PROBED(subflow, mp_join)))
		return 0;
	return BPF_CORE_READ(subflow, token);
}

static __always_inline __u32 tcp_ca_state(const struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(&tcp_sk(sk)->inet_conn, icsk_ca_state);
}

/* Levels of a balanced tree of 2^20 segments, at most 2 log2 n. */
#define TCP_RTX_LEVELS 40

/* When the first segment that is out was sent, us; 0: none is, or it was sent again. */
static __always_inline __u64 tcp_first_sent_us(const struct sock *sk)
{
	const struct rb_node *node = sk->tcp_rtx_queue.rb_node, *left;
	const struct tcp_skb_cb *cb;
	const struct sk_buff *skb;

	for (int level = 0; node && level < TCP_RTX_LEVELS; level++) {
		left = BPF_CORE_READ(node, rb_left);
		if (left) {
			node = left;
			continue;
		}
		skb = (const void *)node - bpf_core_field_offset(struct sk_buff, rbnode);
		cb = (const void *)skb + bpf_core_field_offset(struct sk_buff, cb);
		if (BPF_CORE_READ(cb, sacked) & TCPCB_EVER_RETRANS)
			return 0;
		return BPF_CORE_READ(skb, skb_mstamp_ns) / 1000;
	}
	return 0;
}

/* Does the stack reduce the window to ssthresh by itself (PRR)? */
static __always_inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	__u32 state = tcp_ca_state(sk);

	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}

static __always_inline __u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* include/net/tcp.h: in slow start the window may grow to twice what was in flight. */
static __always_inline bool tcp_is_cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#endif
