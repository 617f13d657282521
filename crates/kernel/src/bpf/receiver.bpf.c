// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Detection at the receiver, as in MPTCP-SBD. For the subflows of a cgroup whose
 * control is one of ours, on both ends.
 *
 * The receiver samples the delay of each segment of data, its clock less the sender's timestamp,
 * and as losses the holes in the sequence; runs detector xcorr (detect/detection.h); and writes a
 * recent decision's number and the subflow's place in it into an option of some pure ACKs, where
 * the stack has room for it. The sender reads it (detect/peer_decision.h).
 *
 * Maps and program are of the process that attached them, and end with it.
 */
#define NR_NOINLINE __attribute__((noinline))
#include "nr_kernel.h"
#include "detectors.def"

#define NR_NUMBER_OF(n, name) NR_DETECTOR_##name = n,
enum { NR_DYNAMIC(NR_NUMBER_OF) };
#define NR_ONE_DETECTOR NR_DETECTOR_xcorr
#include "conns.h"
#include "slots.h"
#include "detect/peer_decision.h"

#define TCPHDR_ACK 0x10
#define TCPOPT_EXP 254

/* An experimental option (RFC 6994), whose ExID is not registered with IANA. */
#define NR_EXID 0x4e57
struct nr_option {
	nr_u8 kind;
	nr_u8 length;
	__be16 exid;
	__be16 epoch; /* of the decision: the low bits of its stamp */
	nr_u8 place;
	nr_u8 reserved; /* 0 */
};
NR_STATIC_ASSERT(sizeof(struct nr_option) == 8, "what MPTCP leaves beside a timestamp");

/* The low word of a decision that is wholly undecided. */
#define NR_ALL_UNDECIDED 0xffffffffu

/*
 * All subflows tell of one decision for so long: the sender obeys what all have told it of, and two
 * decisions no sooner after each other than NR_PEER_LEAST_MS.
 */
#define NR_TELL_MS 1500u
NR_STATIC_ASSERT(NR_TELL_MS > NR_PEER_LEAST_MS, "each decision is there in time to be obeyed");
/* So many pure ACKs tell of a new decision, and then one in so many; a power of two. */
#define NR_TOLD_BY 8u

/* State is made from so many bytes received, and segments sent, on a subflow. */
#define NR_RECEIVER_BYTES 100000
#define NR_PEER_SEGMENTS 70
/* The sender's clock is watched for so long before its timestamps are believed. */
#define NR_SLOPE_US 100000u
#define NR_SLOPE_MAX_US 10000000u

/*
 * Connections at the receiver: 38 kB each, which the kernel's allocator rounds up to 64 kB,
 * allocated on demand. A user gets a part of them (nr_may_have).
 */
#define NR_RECEIVERS_MAX 4096

/* A subflow at the receiver. */
struct nr_receiver_path {
	nr_u64 owner;	/* address of its socket */
	nr_u32 seq;	/* that comes next */
	nr_u32 tsval;	/* at the first segment that was sampled */
	nr_u32 at_us;	/* when that came, wraps */
	nr_u32 tick_us; /* of the sender's timestamps: 1 or 1000; 0: not known yet */
	nr_u32 told;	/* epoch of the newest option */
	nr_u32 acks;	/* pure ACKs that told it; from NR_TOLD_BY on all */
};

/* A connection at the receiver. */
struct nr_receiver {
	struct nr_detection detection; /* the first: its parameters are set at load */
	struct nr_conn conn;
	struct nr_places told; /* the decision that is told of */
	nr_u32 told_ms;	       /* since when, wraps */
	nr_u32 user;	       /* who pays for it: as of its entry of nr_conns */
	nr_u32 gone;	       /* looks at which it had no entry */
	struct nr_receiver_path path[NR_MAX_PATHS];
	struct nr_event event[NR_MAX_PATHS];
};

/* Keyed as nr_conns. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NR_RECEIVERS_MAX);
	__type(key, nr_u32);
	__type(value, struct nr_receiver);
} nr_receivers SEC(".maps");

/* Likewise, at the sender: of connections that are in nr_detections. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NR_DETECTIONS_MAX);
	__type(key, nr_u32);
	__type(value, struct nr_peer_decision);
} nr_peers SEC(".maps");

/* How many of nr_receivers each user has, and all; by index as nr_users. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_USERS_MAX);
	__type(key, nr_u32);
	__type(value, nr_u32);
} nr_receiver_use SEC(".maps");

/* Before its first segment: the detector's parameters are set at load. */
const volatile struct nr_receiver nr_first_receiver SEC(".rodata.first");

static const struct nr_peer_decision nr_no_decision;

/* Decisions since the program was loaded: made at the receiver, and obeyed at the sender. */
nr_u64 decided;
nr_u64 obeyed;

/* slots.h can make entries; this makes none. */
static void nr_conn_begin(struct nr_conn *c)
{
}

/* The entry of a subflow that has a slot under one of our controls. `s`: what says so. */
static __always_inline struct nr_entry *entry_of(struct tcp_sock *tp, struct nr_sock *s)
{
	struct nr_entry *e;
	nr_u32 token;

	if (bpf_core_read(s, sizeof(*s), &tp->inet_conn.icsk_ca_priv) || s->sk != (nr_u64)tp ||
	    s->mode != NR_MODE_PATH)
		return NULL;
	token = s->token;
	e = nr_conns_lookup(&token);
	return e && e->slot[s->slot & (NR_MAX_PATHS - 1)].owner == s->sk ? e : NULL;
}

static __always_inline nr_u32 *used_by(nr_u32 index)
{
	return bpf_map_lookup_elem(&nr_receiver_use, &index);
}

static __always_inline void add(nr_u32 user, nr_s32 more)
{
	nr_u32 *used = used_by(NR_USER_PLACE(user)), *all = used_by(NR_USERS_ALL);

	if (!used || !all)
		return;
	nr_count(used, more);
	nr_count(all, more);
}

static __always_inline bool may_add(nr_u32 user)
{
	nr_u32 *used = used_by(NR_USER_PLACE(user)), *all = used_by(NR_USERS_ALL), taken;

	if (!used || !all)
		return false;
	taken = NR_READ(*all);
	return nr_may_have(NR_READ(*used), taken < NR_RECEIVERS_MAX ? NR_RECEIVERS_MAX - taken : 0);
}

/* What is kept of a connection; made if it has two subflows, of which one has received enough. */
static __always_inline struct nr_receiver *receiver_of(struct tcp_sock *tp, struct nr_entry *e,
						       nr_u32 token)
{
	struct nr_receiver *r = bpf_map_lookup_elem(&nr_receivers, &token);
	nr_u32 slots = NR_READ(e->word) & NR_WORD_SLOTS, user = NR_READ(e->user);

	if (r || !(slots & (slots - 1)) || tp->bytes_received < NR_RECEIVER_BYTES || !may_add(user))
		return r;
	if (bpf_map_update_elem(&nr_receivers, &token, (const void *)&nr_first_receiver,
				BPF_NOEXIST))
		return NULL;
	add(user, 1);
	r = bpf_map_lookup_elem(&nr_receivers, &token);
	if (r)
		r->user = user;
	return r;
}

/* Passes the event of the slot on to the detector. */
NR_NOINLINE int nr_sampled(struct nr_receiver *r, nr_u32 slot)
{
	slot &= NR_MAX_PATHS - 1;
	if (!r)
		return 0;
	if (nr_detect(NR_DETECTOR_xcorr, &r->conn, &r->detection, slot, &r->event[slot]) !=
	    NR_NOT_DECIDED)
		__sync_fetch_and_add(&decided, 1);
	return 1;
}

/* The receiver's part of a segment: `payload` bytes from `seq` on. */
static __always_inline void sample(struct tcp_sock *tp, struct nr_receiver *r, struct nr_sock *s,
				   nr_u32 seq, nr_u32 payload)
{
	nr_u32 slot = s->slot & (NR_MAX_PATHS - 1), mss = tp->inet_conn.icsk_ack.rcv_mss;
	struct nr_receiver_path *p = &r->path[slot];
	struct nr_event *ev = &r->event[slot];
	nr_u32 now_us = (nr_u32)tp->tcp_mstamp, tsval = tp->rx_opt.rcv_tsval;
	nr_u32 elapsed, ticks;

	*ev = (struct nr_event){.now_us = tp->tcp_mstamp, .state = NR_ACTIVE};
	if (p->owner != s->sk) {
		*p = (struct nr_receiver_path){
		    .owner = s->sk, .seq = seq + payload, .tsval = tsval, .at_us = now_us};
		ev->kind = NR_JOINED;
		nr_sampled(r, slot);
		return;
	}
	if (!mss)
		mss = payload;
	ev->delivered = (payload + mss - 1) / mss;
	if ((nr_s32)(seq - p->seq) > 0)
		ev->lost = (seq - p->seq + mss - 1) / mss;
	if ((nr_s32)(seq + payload - p->seq) > 0)
		p->seq = seq + payload;
	elapsed = now_us - p->at_us;
	ticks = tsval - p->tsval;
	if (!p->tick_us) {
		if (elapsed > NR_SLOPE_MAX_US) {
			p->tsval = tsval;
			p->at_us = now_us;
		} else if (elapsed >= NR_SLOPE_US) {
			p->tick_us = ticks > elapsed / 30 ? 1 : 1000;
		}
		return;
	}
	ev->kind = NR_ACKED;
	ev->flags = NR_F_OWD | NR_F_DWELL;
	ev->owd_us = (nr_s32)(elapsed - ticks * p->tick_us);
	nr_sampled(r, slot);
}

/* The sender's part of a segment: reads the option. */
static __always_inline void read_option(struct bpf_sock_ops *ops, struct tcp_sock *tp,
					struct nr_entry *e, struct nr_sock *s)
{
	struct nr_option option = {.kind = TCPOPT_EXP, .length = 4, .exid = bpf_htons(NR_EXID)};
	nr_u32 token = s->token, slot = s->slot & (NR_MAX_PATHS - 1), part;
	struct nr_detection *det = bpf_map_lookup_elem(&nr_detections, &token);
	struct nr_peer_decision *p;

	if (!det)
		return;
	p = bpf_map_lookup_elem(&nr_peers, &token);
	if (!p) {
		if (tp->data_segs_out < NR_PEER_SEGMENTS)
			return;
		bpf_map_update_elem(&nr_peers, &token, &nr_no_decision, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&nr_peers, &token);
		if (!p)
			return;
		p->begun_ms = tp->tcp_mstamp / 1000;
	}
	if (p->owner[slot] != s->sk) { /* what was received is another subflow's */
		p->owner[slot] = s->sk;
		nr_forget_parts(p, slot);
	}
	if (bpf_load_hdr_opt(ops, &option, sizeof(option), 0) != sizeof(option) ||
	    option.reserved || !nr_is_place(option.place))
		return;
	part = NR_PART(bpf_ntohs(option.epoch), option.place);
	if (nr_peer_part(p, slot, part, tp->tcp_mstamp / 1000) &&
	    nr_peer_decide(&e->conn, det, p, slot, tp->tcp_mstamp))
		__sync_fetch_and_add(&obeyed, 1);
}

static __always_inline void parse(struct bpf_sock_ops *ops, struct tcp_sock *tp)
{
	const nr_u8 *header = (void *)(long)ops->skb_data, *end = (void *)(long)ops->skb_data_end;
	nr_u32 seq, payload;
	struct nr_receiver *r;
	struct nr_entry *e;
	struct nr_sock s;

	e = entry_of(tp, &s);
	if (!e || header + 20 > end)
		return;
	read_option(ops, tp, e, &s);
	seq = bpf_ntohl(*(const __be32 *)(header + 4));
	payload = ops->skb_len - (header[12] >> 4) * 4;
	if (!payload || !BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp))
		return;
	r = receiver_of(tp, e, s.token);
	if (r)
		sample(tp, r, &s, seq, payload);
}

/*
 * What there is to tell the peer of the subflow, of the newest decision. NULL: there is none, or it
 * is wholly undecided.
 */
static __always_inline struct nr_receiver_path *decision(struct tcp_sock *tp,
							 struct nr_option *option)
{
	struct nr_places places;
	struct nr_receiver *r;
	struct nr_sock s;
	nr_u32 token, slot, since, now_ms = tp->tcp_mstamp / 1000;

	if (!entry_of(tp, &s))
		return NULL;
	token = s.token;
	slot = s.slot & (NR_MAX_PATHS - 1);
	r = bpf_map_lookup_elem(&nr_receivers, &token);
	if (!r || r->path[slot].owner != s.sk)
		return NULL;
	places.word = NR_READ(r->told.word);
	if (!places.word || (nr_s32)(now_ms - r->told_ms) >= (nr_s32)NR_TELL_MS) {
		places.word = NR_READ(r->detection.decided.word);
		NR_WRITE(r->told.word, places.word);
		r->told_ms = now_ms;
	}
	if (!places.word || (nr_u32)places.word == NR_ALL_UNDECIDED)
		return NULL;
	since = NR_READ(r->detection.path[slot].since);
	*option = (struct nr_option){
	    .kind = TCPOPT_EXP,
	    .length = sizeof(*option),
	    .exid = bpf_htons(NR_EXID),
	    .epoch = bpf_htons((nr_u16)nr_stamp(&places)),
	    /* Of a subflow that had the slot before this one nothing is told. */
	    .place =
		(nr_s32)(nr_stamp(&places) - since) > 0 ? nr_place(&places, slot) : NR_UNDECIDED,
	};
	return &r->path[slot];
}

/* A pure ACK is made: may it tell the peer? */
static __always_inline void tell(struct bpf_sock_ops *ops, struct tcp_sock *tp)
{
	struct nr_option option;
	struct nr_receiver_path *p = decision(tp, &option);

	if (!p)
		return;
	if (p->told != option.epoch) {
		p->told = option.epoch;
		p->acks = 0;
	}
	if (p->acks >= NR_TOLD_BY && p->acks++ % NR_TOLD_BY)
		return;
	/* There is no room beside SACK blocks. */
	if (!bpf_reserve_hdr_opt(ops, sizeof(option), 0) && p->acks < NR_TOLD_BY)
		p->acks++;
}

SEC("sockops")
int nr_receiver(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct nr_option option;

	if (!tp)
		return 1;
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (mptcp_token((struct sock *)tp))
			bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags |
							   BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG |
							   BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		parse(ops, tp);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		/* Only pure ACKs; and it would count for the MSS. */
		if (ops->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS && !ops->skb_len &&
		    ops->skb_tcp_flags == TCPHDR_ACK)
			tell(ops, tp);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		if (decision(tp, &option))
			bpf_store_hdr_opt(ops, &option, sizeof(option), 0);
		break;
	}
	return 1;
}

/* Has what is kept of a connection had no entry beside it at the last look either? */
static __always_inline bool is_gone(nr_u32 token, nr_u32 *gone)
{
	if (nr_conns_lookup(&token)) {
		*gone = 0;
		return false;
	}
	return (*gone)++;
}

static long sweep_receiver(void *map, const nr_u32 *token, struct nr_receiver *r, void *unused)
{
	nr_u32 key = *token, user = r->user;

	if (is_gone(key, &r->gone) && !bpf_map_delete_elem(&nr_receivers, &key))
		add(user, -1);
	return 0;
}

static long sweep_peer(void *map, const nr_u32 *token, struct nr_peer_decision *p, void *unused)
{
	nr_u32 key = *token;

	if (is_gone(key, &p->gone))
		bpf_map_delete_elem(&nr_peers, &key);
	return 0;
}

/* Deletes what is kept of connections that have ended. User space runs it once a second. */
SEC("syscall")
int nr_sweep(void *unused)
{
	bpf_for_each_map_elem(&nr_receivers, sweep_receiver, NULL, 0);
	bpf_for_each_map_elem(&nr_peers, sweep_peer, NULL, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
