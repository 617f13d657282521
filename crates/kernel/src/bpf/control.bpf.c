// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A congestion control for stock Linux: translates between struct sock and the events of
 * docs/method/contract.md, without any formula. Compiled twice per law, NR_THIS (law.h), without
 * and with detectors that decide (NR_STATIC_DETECTORS); detector, slow start and parameters are set
 * at load, and unused code is pruned.
 *
 *   .init         JOINED: a slot of the connection's entry (state.h)
 *   .release      LEFT
 *   .cwnd_event   a socket under the fallback law retries when it begins to send
 *
 * All other events: window_hooks.h, or for a law with a model of its path (NR_THIS_MODEL)
 * model_hooks.h.
 *
 * A socket without a slot runs the fallback law (laws/fallback.h), as one of eight equal coupled
 * paths: it takes too little rather than a second full share.
 */
#include "nr_kernel.h"

#define NR_NOINLINE __attribute__((noinline))
#include "clock.h"

/*
 * Set by our loader; the defaults are for other loaders. The law is fixed at compile time: before
 * 6.8 the verifier checks every global function of an object, used or not.
 */
const volatile struct {
	nr_u32 detector;
	nr_u32 start;
	nr_u32 window[2];
	nr_u32 param[NR_LAW_PARAMS];
	nr_u32 join[NR_JOIN_PARAMS];
	nr_u32 signal; /* enum nr_signal; of a detector that decides */
} control SEC(".rodata.control") = {NR_THIS_DETECTOR, NR_THIS_START,  {NR_THIS_WINDOW},
				    {NR_THIS_PARAMS}, {NR_THIS_JOIN}, NR_SIGNAL_RTT};

#define NR_ONE_DETECTOR control.detector
#include NR_LAW_HEADER
#include "nr.h"
#include "laws/fallback.h"
#include "conns.h"
#include "slots.h"
#include "decision_times.h"
#include "repair.h"

#define USER_NS_LEVELS 33 /* kernel/user_namespace.c: the deepest has level 33 */
#define SUBFLOWS_MAX 16	  /* looked at; the in-kernel path manager makes up to 9 */

/* Of a socket on one path: plain TCP, and MPTCP that fell back to it. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nr_entry);
} nr_alone SEC(".maps");

/* Network namespace (cookie, as an inode number is given again) -> the control for its plain TCP.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, nr_u64);
	__type(value, char[TCP_CA_NAME_MAX]);
} nr_plain SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_COUNTERS);
	__type(key, nr_u32);
	__type(value, nr_u64);
} nr_counters SEC(".maps");

#ifndef NR_STATIC_DETECTORS
/*
 * What a detector keeps of a connection before its first path joins; its parameters, and how much
 * of a decision is made in one acknowledgement, are set at load.
 */
const volatile struct nr_detection nr_first_detection SEC(".rodata.first");

static __always_inline struct nr_detection *detection(nr_u32 token)
{
	return token ? bpf_map_lookup_elem(&nr_detections, &token) : NULL;
}

/*
 * Is there memory for the detector of the connection, whose entry is `e`? Makes it if not; on one
 * path there is nothing to detect.
 */
static __always_inline bool ensure_detection(struct nr_entry *e, nr_u32 token)
{
	nr_u32 slots = NR_READ(e->word) & NR_WORD_SLOTS, user = NR_READ(e->user);

	if (!nr_decides(control.detector) || !token || !(slots & (slots - 1)) || detection(token))
		return true;
	if (!nr_user_may_detect(user))
		return false;
	if (!bpf_map_update_elem(&nr_detections, &token, (const void *)&nr_first_detection,
				 BPF_NOEXIST))
		nr_user_detections(user, 1);
	return detection(token);
}
#else
static __always_inline struct nr_detection *detection(nr_u32 token)
{
	return NULL;
}

static __always_inline bool ensure_detection(struct nr_entry *e, nr_u32 token)
{
	return true;
}
#endif

static __always_inline void nr_conn_begin(struct nr_conn *c)
{
	nr_conn_init(c, NR_NUMBER, control.detector);
	for (nr_u32 n = 0; n < 2; n++)
		c->window[n] = control.window[n];
	for (nr_u32 n = 0; n < NR_LAW_PARAMS; n++)
		c->param[n] = control.param[n];
	for (nr_u32 n = 0; n < NR_JOIN_PARAMS; n++)
		c->join[n] = control.join[n];
}

static __always_inline void count(nr_u32 which)
{
	nr_u64 *counter = bpf_map_lookup_elem(&nr_counters, &which);

	if (counter)
		__sync_fetch_and_add(counter, 1);
}

static __always_inline struct nr_sock *nr_sk(struct sock *sk)
{
	return (struct nr_sock *)tcp_sk(sk)->inet_conn.icsk_ca_priv;
}

/* Hooks also run before init (those of an ACK, if a SYN had data) and after release. */
static __always_inline nr_u32 mode(struct sock *sk)
{
	return nr_sk(sk)->sk == (nr_u64)sk ? nr_sk(sk)->mode : NR_MODE_NONE;
}

/* The control in the format of nr_entry.word. */
static __always_inline nr_u64 control_word(void)
{
	return NR_WORD_VERSION(NR_VERSION) | NR_WORD_LAW(NR_NUMBER) |
	       NR_WORD_DETECTOR(control.detector) | NR_WORD_START(control.start);
}

/* State of a path that has nothing in flight and nothing to send. Either side makes it a backup. */
static __always_inline nr_u32 idle_state(struct sock *sk)
{
	struct mptcp_subflow_context *subflow = subflow_ctx(sk);

	return subflow && (BPF_CORE_READ_BITFIELD_PROBED(subflow, backup) ||
			   BPF_CORE_READ_BITFIELD_PROBED(subflow, request_bkup))
		   ? NR_BACKUP
		   : NR_IDLE;
}

/* Of the option DSS in Linux's data segments (RFC 8684, section 3.3), padded. */
#define NR_DSS_BYTES 24u

/*
 * Bytes of a full data segment. The stack's mss_cache leaves no room for MPTCP's option with the
 * data sequence, which takes 24 of them: a model law whose rate is in such segments would pace 1.7
 * % faster than it has measured, which is more than the 1 % that BBR stays below, and a queue would
 * stand.
 */
static __always_inline nr_u32 segment(struct sock *sk)
{
	nr_u32 mss = tcp_sk(sk)->mss_cache;

	return nr_sk(sk)->token && mss > 2 * NR_DSS_BYTES ? mss - NR_DSS_BYTES : mss;
}

static __always_inline struct nr_event *fill(struct sock *sk, struct nr_entry *e, nr_u32 kind)
{
	struct nr_event *ev = &e->slot[nr_sk(sk)->slot & (NR_MAX_PATHS - 1)].event;
	struct tcp_sock *tp = tcp_sk(sk);
	nr_u64 last_us = ev->now_us; /* which may have been read later than the stack's */

	*ev = (struct nr_event){
	    .now_us = tp->tcp_mstamp > last_us ? tp->tcp_mstamp : last_us,
	    .kind = kind,
	    .state = NR_ACTIVE,
	    .inflight = tcp_packets_in_flight(tp),
	    .cwnd = tp->snd_cwnd,
	    .ssthresh = tp->snd_ssthresh,
	    .srtt8_us = tp->srtt_us,
	    .mss = segment(sk),
	};
	return ev;
}

static __always_inline bool samples_one_way(void)
{
	return nr_decides(control.detector) && control.signal != NR_SIGNAL_RTT;
}

/*
 * Keeps the delays of an acknowledgement, until it is reported: the round-trip time of its newest
 * segment, and what its timestamp says of the way there.
 */
static __always_inline void keep_delay(struct sock *sk, long rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);

	if (rtt_us <= 0)
		return;
	s->rtt_us = rtt_us;
	if (!samples_one_way() || mode(sk) != NR_MODE_PATH)
		return;
	if (!BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok))
		s->clock.delay = NR_DELAY_NO_TIMESTAMPS;
	else if (BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp))
		nr_clock_sample(&s->clock, tp->rx_opt.rcv_tsval, (nr_u32)tp->tcp_mstamp, rtt_us,
				control.signal);
}

/* Reports them. A path has either kind, and no delay while the peer's clock is not known. */
static __always_inline void fill_one_way(struct nr_sock *s, struct nr_entry *e, struct nr_event *ev)
{
	struct nr_clock *clock = &s->clock;

	if (!samples_one_way())
		return;
	if (clock->fresh) {
		ev->owd_us = clock->owd_us;
		ev->flags |= NR_F_OWD;
	} else if (!nr_delay_is_rtt(clock->delay)) {
		ev->flags |= NR_F_NO_DELAY;
	}
	clock->fresh = 0;
	if (clock->told == clock->delay)
		return;
	clock->told = clock->delay;
	e->ident[s->slot & (NR_MAX_PATHS - 1)].delay = clock->delay;
}

/*
 * Is the application the limit, not the window, and not what the scheduler gives to others? Linux
 * says so of plain TCP alone.
 */
static __always_inline bool app_limited(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mptcp_sock *msk = (void *)mptcp_sk(sk);

	return tp->write_seq == tp->snd_nxt && !tcp_is_cwnd_limited(tp) &&
	       tcp_packets_in_flight(tp) < tp->snd_cwnd && !BPF_CORE_READ(msk, first_pending);
}

static __always_inline struct nr_event *fill_acked(struct sock *sk, struct nr_entry *e)
{
	struct nr_event *ev = fill(sk, e, NR_ACKED);
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);

	if (!tp->packets_out && tp->write_seq == tp->snd_nxt)
		ev->state = idle_state(sk);
	if (sk->sk_pacing_status != SK_PACING_NONE)
		ev->flags |= NR_F_PACED;
	ev->delivered = tp->delivered - s->delivered;
	ev->lost = tp->lost - s->lost;
	ev->marked = tp->delivered_ce - s->marked;
	ev->rtt_us = s->rtt_us;
	s->delivered = tp->delivered;
	s->lost = tp->lost;
	s->marked = tp->delivered_ce;
	s->rtt_us = 0;
	fill_one_way(s, e, ev);
	if (nr_this.kind == NR_WINDOW && nr_decides(control.detector) && s->token &&
	    app_limited(sk))
		ev->flags |= NR_F_APP_LIMITED;
	return ev;
}

/* A round that begins now ends when this is acknowledged; with a model law, see begins_round(). */
static __always_inline nr_u32 round_mark(const struct tcp_sock *tp)
{
	return nr_this.kind == NR_MODEL ? tp->delivered : tp->snd_nxt;
}

static __always_inline struct nr_path *line(struct nr_entry *e, nr_u32 slot)
{
	return &e->conn.path[slot & (NR_MAX_PATHS - 1)];
}

/*
 * The detector's and the law's part of an event (nr.h). Global functions, which the verifier checks
 * once in each program that calls them; several, as BPF's stack is small.
 */
NR_NOINLINE int nr_detects(struct nr_entry *e, nr_u32 slot)
{
	nr_u64 began_ns = clock_ns();
	struct nr_detection *det;
	nr_u32 decided;
	bool were;

	slot &= NR_MAX_PATHS - 1;
	if (!e)
		return 0;
	det = detection(e->word >> 32);
	were = at_hand(det);
	decided = nr_detect(control.detector, &e->conn, det, slot, &e->slot[slot].event);
	note_times(det, began_ns, were, decided);
	if (decided != NR_NOT_DECIDED)
		count(NR_DECISIONS);
	if (decided == NR_REGROUPED)
		count(NR_REGROUPINGS);
	return 1;
}

/* The detector's part of an event other than an acknowledgement. */
NR_NOINLINE int nr_is_shown(struct nr_entry *e, nr_u32 slot)
{
	slot &= NR_MAX_PATHS - 1;
	if (!e)
		return 0;
	nr_detect_shown(control.detector, &e->conn, detection(e->word >> 32), slot,
			&e->slot[slot].event);
	return 1;
}

NR_NOINLINE int nr_follows(struct nr_entry *e, nr_u32 slot)
{
	slot &= NR_MAX_PATHS - 1;
	if (!e)
		return 0;
	nr_law_event(control.start, &e->conn, slot, &e->slot[slot].private, &e->slot[slot].event);
	return 1;
}

/*
 * Passes the event of the socket's slot on, by which programs know if it is an acknowledgement. A
 * detector that does not decide is shown joins only.
 */
static __always_inline void nr_event(struct sock *sk, struct nr_entry *e, bool acked)
{
	nr_u32 slot = nr_sk(sk)->slot & (NR_MAX_PATHS - 1);
	struct nr_event *ev = &e->slot[slot].event;
	nr_u32 delivered = ev->delivered, lost = ev->lost;
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);

	if (nr_decides(control.detector) ? nr_ack_passes(&s->thinning, ev)
					 : !acked && ev->kind == NR_JOINED) {
		nr_ack_passed(&s->thinning, ev, tp->delivered, tp->lost);
		if (acked)
			nr_detects(e, slot);
		else
			nr_is_shown(e, slot);
		ev->delivered = delivered;
		ev->lost = lost;
	}
	nr_follows(e, slot);
}

/*
 * A kernel may skip a program (docs/guide/trouble.md). The stack then uses a stale
 * word, an address, as the result of nr_ssthresh() or nr_undo_cwnd(); without repair that becomes a
 * window of hundreds of millions of packets. `path` is NULL without a slot.
 */
static __always_inline void repair_cwnd(struct sock *sk, struct nr_path *path)
{
	struct nr_sock *s = nr_sk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_cwnd <= s->cwnd)
		return;
	/* The stack sets the first window when the handshake is over, maybe after SYN timeouts. */
	if (sk->__sk_common.skc_state == TCP_SYN_SENT)
		return;
	if (tp->snd_cwnd > nr_cwnd_most(s->cwnd, path ? path->ssthresh : 0, tp->packets_out)) {
		tp->snd_cwnd = path ? path->cwnd : s->cwnd ? s->cwnd : NR_INIT_CWND;
		count(NR_REPAIRED);
	}
	s->cwnd = tp->snd_cwnd;
}

/* A program leaves the window at `cwnd`; after the handshake the stack sets it once more. */
static __always_inline void leave_cwnd(struct sock *sk, nr_u32 cwnd)
{
	nr_sk(sk)->cwnd = sk->__sk_common.skc_state == TCP_SYN_SENT ? 0 : cwnd;
}

/* The same for the fallback law, at the begin of a reduction. */
static __always_inline void repair_reno_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (mode(sk) == NR_MODE_FALLBACK && tp->snd_ssthresh > tp->prior_cwnd)
		tp->snd_ssthresh = nr_reno_ssthresh(tp->prior_cwnd);
}

/* Paces at `rate` bytes/s; 0: as it is. */
static __always_inline void pace(struct sock *sk, nr_u64 rate)
{
	if (!rate)
		return;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/*
 * The socket's entry; NULL if absent, or deleted externally (a new entry may exist under the key).
 */
static __always_inline struct nr_entry *entry(struct sock *sk)
{
	struct nr_sock *s = nr_sk(sk);
	nr_u32 token = s->token, in = mode(sk);
	struct nr_entry *e;

	if (in == NR_MODE_PATH)
		e = nr_conns_lookup(&token);
	else if (in == NR_MODE_ALONE)
		e = bpf_sk_storage_get(&nr_alone, sk, NULL, 0);
	else
		return NULL;
	if (!e || e->slot[s->slot & (NR_MAX_PATHS - 1)].owner != s->sk) {
		count(NR_FALLBACK_LOST);
		s->mode = NR_MODE_FALLBACK;
		return NULL;
	}
	repair_cwnd(sk, line(e, s->slot));
	return e;
}

static __always_inline void identify(struct sock *sk, struct nr_entry *e, nr_u32 slot)
{
	struct sock_common *c = &sk->__sk_common;
	struct mptcp_subflow_context *subflow = subflow_ctx(sk);
	struct nr_ident *ident = &e->ident[slot & (NR_MAX_PATHS - 1)];

	e->netns = c->skc_net.net->ns.inum;
	*ident = (struct nr_ident){
	    .sport = c->skc_num,
	    .dport = bpf_ntohs(c->skc_dport),
	    .family = c->skc_family,
	};
	if (c->skc_family == AF_INET) {
		ident->saddr[0] = c->skc_rcv_saddr;
		ident->daddr[0] = c->skc_daddr;
	} else if (bpf_core_field_exists(c->skc_v6_daddr)) {
		bpf_core_read(ident->saddr, sizeof(ident->saddr), &c->skc_v6_rcv_saddr);
		bpf_core_read(ident->daddr, sizeof(ident->daddr), &c->skc_v6_daddr);
	}
	if (subflow) {
		ident->local_id = BPF_CORE_READ_BITFIELD_PROBED(subflow, local_id);
		ident->remote_id = BPF_CORE_READ(subflow, remote_id);
	}
}

/*
 * Who pays for the entry of an MPTCP socket, given by its address, as a uid of the initial user
 * namespace: the owner of the socket; in a network namespace of another user namespace, the owner
 * of that, and if it is nested, of the outermost one. So whoever makes namespaces has no more in
 * all of them than he is given once. But root makes them for others, as a container's engine does:
 * there it is the owner of the socket again, as he is mapped.
 */
NR_NOINLINE int nr_user(nr_u64 msk)
{
	struct sock *sk = (void *)msk;
	struct user_namespace *ns = BPF_CORE_READ(sk, __sk_common.skc_net.net, user_ns);
	nr_u32 owner;

	if (!BPF_CORE_READ(ns, level))
		return BPF_CORE_READ(sk, sk_uid.val);
	for (nr_u32 n = 0; n < USER_NS_LEVELS && BPF_CORE_READ(ns, level) > 1; n++)
		ns = BPF_CORE_READ(ns, parent);
	owner = BPF_CORE_READ(ns, owner.val);
	return owner ? owner : BPF_CORE_READ(sk, sk_uid.val);
}

/*
 * Takes a slot for the socket, whose token is set: NR_JOINS, or the reason for failure. A function
 * separate from join(), as BPF's stack is small.
 */
static __noinline nr_u32 enter(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);
	nr_u32 slot = 0, reason = NR_FALLBACK_FULL;
	nr_u32 token = s->token;
	struct nr_entry *e;

	if (token) {
		nr_u64 mine = control_word() | NR_WORD_TOKEN(token);

		e = nr_take_slot(mine, nr_user(mptcp_sk(sk)), &slot, &reason);
		if (!e)
			return reason;
		identify(sk, e, slot);
	} else {
		e = bpf_sk_storage_get(&nr_alone, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!e)
			return reason;
		nr_conn_begin(&e->conn);
	}
	e->slot[slot & (NR_MAX_PATHS - 1)].owner = s->sk;
	e->slot[slot & (NR_MAX_PATHS - 1)].outside = 0;
	s->slot = slot;
	s->mode = token ? NR_MODE_PATH : NR_MODE_ALONE;
	s->delivered = tp->delivered;
	s->lost = tp->lost;
	s->marked = tp->delivered_ce;
	s->thinning = (struct nr_ack_thinning){
	    .acked_us = (nr_u32)tp->tcp_mstamp, .delivered = tp->delivered, .lost = tp->lost};
	s->round_end = round_mark(tp);
	s->rtt_us = 0;
	s->clock = (struct nr_clock){.delay = samples_one_way() ? NR_DELAY_UNKNOWN : NR_DELAY_RTT};
	return NR_JOINS;
}

/* Takes a slot, and the law starts with the socket's current windows. */
static __always_inline nr_u32 join(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_entry *e;
	struct nr_event *ev;
	nr_u32 result, cwnd;

	if (!nr_sk(sk)->token)
		nr_sk(sk)->token = mptcp_token(sk);
	result = enter(sk);
	repair_cwnd(sk, NULL); /* the slot has no window yet */
	if (result != NR_JOINS)
		return result;
	e = entry(sk);
	if (!e)
		return NR_FALLBACK_LOST;
	if (!ensure_detection(e, nr_sk(sk)->token))
		count(NR_UNDETECTED);
	ev = fill(sk, e, NR_JOINED);
	ev->now_us = bpf_ktime_get_ns() / 1000;
	/* The control may be changed, or the slot come, when data has been sent. */
	if (idle_state(sk) == NR_BACKUP)
		ev->state = NR_BACKUP;
	else if (!tp->data_segs_out)
		ev->state = NR_JOINING;
	nr_event(sk, e, false);
	cwnd = line(e, nr_sk(sk)->slot)->cwnd;
	tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
	if (nr_this.kind == NR_MODEL)
		pace(sk, line(e, nr_sk(sk)->slot)->pacing_rate);
	return NR_JOINS;
}

SEC("struct_ops")
void BPF_PROG(nr_init, struct sock *sk)
{
	struct nr_sock *s = nr_sk(sk);
	nr_u32 token = mptcp_token(sk);

	s->sk = (nr_u64)sk;
	s->token = token;
	s->mode = NR_MODE_FALLBACK;
	s->cwnd = 0; /* it may have run hooks before */
	s->round_end = round_mark(tcp_sk(sk));
	/* Set while it connects: whether it is MPTCP is not known. It joins with its first data. */
	if (!token && subflow_ctx(sk) && sk->__sk_common.skc_state == TCP_SYN_SENT)
		return;
	if (!token) {
		nr_u64 netns = sk->__sk_common.skc_net.net->net_cookie;
		char *plain = bpf_map_lookup_elem(&nr_plain, &netns);

		if (subflow_ctx(sk))
			count(NR_TCP_FALLBACKS);
		/* Fails if there is no such control, or if a BPF control selected this one. */
		if (plain && !bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, plain, TCP_CA_NAME_MAX)) {
			count(NR_PLAIN); /* *s now belongs to the other control */
			return;
		}
		count(NR_ALONE);
	}
	count(join(sk));
	s->cwnd = 0; /* the stack or a BPF program may set it once more */
}

SEC("struct_ops")
void BPF_PROG(nr_release, struct sock *sk)
{
	struct nr_sock *s = nr_sk(sk);
	struct nr_entry *e = entry(sk);
	bool alone = mode(sk) == NR_MODE_ALONE;

	s->sk = 0;
	if (!e)
		return;
	count(NR_LEAVES);
	if (alone) {
		bpf_sk_storage_delete(&nr_alone, sk);
		return;
	}
	fill(sk, e, NR_LEFT)->now_us = bpf_ktime_get_ns() / 1000;
	nr_event(sk, e, false);
	nr_leave_slot(e, s->token, s->slot);
}

static __always_inline bool couples(void)
{
	return nr_first_masks(control.detector, NR_MASKS_SHARED) != NR_MASKS_DISJOINT;
}

/*
 * How many established subflows an MPTCP socket has, by its address, other than backups: all, or
 * those that run none of our controls. Reads without a lock, by probe: it may be wrong about a list
 * that is changing. A global function (nr_port.h).
 */
NR_NOINLINE int nr_subflows(nr_u64 msk, bool foreign)
{
	nr_u64 list = msk + bpf_core_field_offset(struct mptcp_sock, conn_list);
	struct list_head *node = (void *)list;
	int count = 0;

	for (nr_u32 n = 0; n < SUBFLOWS_MAX; n++) {
		struct mptcp_subflow_context *subflow;
		struct inet_connection_sock *icsk;
		struct sock *sk;
		nr_u64 first = 0;

		node = BPF_CORE_READ(node, next);
		if (!node || (nr_u64)node == list)
			break;
		subflow = (void *)node - bpf_core_field_offset(struct mptcp_subflow_context, node);
		sk = BPF_CORE_READ(subflow, tcp_sock);
		if (BPF_CORE_READ(sk, __sk_common.skc_state) != TCP_ESTABLISHED ||
		    BPF_CORE_READ_BITFIELD_PROBED(subflow, backup) ||
		    BPF_CORE_READ_BITFIELD_PROBED(subflow, request_bkup))
			continue;
		icsk = (void *)sk;
		bpf_core_read(&first, sizeof(first), &icsk->icsk_ca_priv);
		if (!foreign || first != (nr_u64)sk) /* struct nr_sock */
			count++;
	}
	return count;
}

/*
 * Must the path run the fallback law, as subflows outside its entry would take a share beside it?
 * `round`: a round trip is over.
 */
static __always_inline bool uncoupled(struct sock *sk, struct nr_slot *slot, bool round)
{
	nr_u32 rounds = slot->outside, now_ms;

	if (!couples() || mode(sk) != NR_MODE_PATH)
		return false;
	if (!round)
		return rounds == NR_OUTSIDE_ROUNDS;
	now_ms = tcp_sk(sk)->tcp_mstamp / 1000;
	if (now_ms - slot->looked_ms < NR_OUTSIDE_MS)
		return rounds == NR_OUTSIDE_ROUNDS;
	slot->looked_ms = now_ms;
	if (!nr_subflows(mptcp_sk(sk), true)) {
		slot->outside = 0;
		return false;
	}
	if (rounds == NR_OUTSIDE_ROUNDS)
		return true;
	slot->outside = ++rounds;
	if (rounds < NR_OUTSIDE_ROUNDS)
		return false;
	count(NR_FALLBACK_OUTSIDE);
	return true;
}

/* Could it take more than one path's share with others of its connection? */
static __always_inline bool beside_others(struct sock *sk)
{
	return couples() && nr_sk(sk)->token && nr_subflows(mptcp_sk(sk), false) > 1;
}

/* The fallback law; Reno, if there is nothing to couple with. */
static __always_inline void fallback(struct sock *sk, nr_u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	nr_u32 acks;

	repair_cwnd(sk, NULL);
	if (!tcp_is_cwnd_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh)
		acked = tcp_slow_start(tp, acked);
	if (acked) {
		acks = beside_others(sk) ? nr_fallback_acks(tp->snd_cwnd) : tp->snd_cwnd;
		tcp_cong_avoid_ai(tp, acks ? acks : 1, acked); /* it divides */
	}
	leave_cwnd(sk, tp->snd_cwnd);
}

#ifdef NR_THIS_MODEL
#include "model_hooks.h"
#else
#include "window_hooks.h"
#endif

SEC(".struct_ops")
struct tcp_congestion_ops nr_ops = {
    .init = (void *)nr_init,
    .release = (void *)nr_release,
#ifdef NR_THIS_MODEL
    .cong_control = (void *)nr_cong_control,
#else
    .pkts_acked = (void *)nr_pkts_acked,
    .cong_avoid = (void *)nr_cong_avoid,
#endif
    .ssthresh = (void *)nr_ssthresh,
    .set_state = (void *)nr_set_state,
    .undo_cwnd = (void *)nr_undo_cwnd,
    .cwnd_event = (void *)nr_cwnd_event,
    .sndbuf_expand = (void *)nr_sndbuf_expand,
    .flags = TCP_CONG_NON_RESTRICTED,
    .name = NR_THIS_NAME,
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
