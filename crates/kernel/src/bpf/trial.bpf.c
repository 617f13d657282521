// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A trial: of the new connections of a cgroup that would run one control a share is drawn to run
 * another, and what becomes of both is counted (trial.h). No process is needed: a timer looks once
 * a second, and ends the trial when a guard is broken or its time is over.
 *
 * The arm of a connection is by a keyed hash: of the local token of an MPTCP connection, so that
 * all its subflows are in one arm, or of the cookie of a plain socket. Who is drawn gets the
 * control when the subflow is established. MPTCP may set it back to that of the MPTCP socket, when
 * a socket option was set; the next round trip gives it again. So it does with the control that was
 * before, once the trial has ended. Without round trips, a retransmission timeout does.
 *
 * The connection's state is an entry of nr_trial_conns. A subflow has a slot there while it is
 * established, whose socket the timer reads by probe: a slot is given back when the socket closes,
 * which is before its memory is another's, and what is another's by its cookie is not taken.
 */
#include "conns.h"
#include "trial.h"

#define TCP_CLOSE 7
#define EBUSY 16
/* Looks at which none of a connection's sockets is found, until it is over. */
#define NR_TRIAL_LOST 2
#define NR_TICK_NS 1000000000ull
#define NR_TRIAL_PORTS 8
/* Connections at a time; further ones are in neither arm. */
#define NR_TRIAL_CONNS 16384
/* A week. */
#define NR_TRIAL_MINUTES 10081

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* More fields of the same types. */
struct tcp_sock___trial {
	__u32 snd_una;
	__u64 bytes_acked;
	__u32 data_segs_out;
	__u32 total_retrans;
	__u32 chrono_start;
	__u32 chrono_stat[3];
	__u8 chrono_type : 2;
};

struct inet_connection_sock___trial {
	__u8 icsk_ca_dst_locked : 1;
};

struct mptcp_sock___trial {
	__u64 bytes_acked; /* from 6.5 on */
};

struct bpf_iter__tcp {
	struct sock_common *sk_common;
};

#pragma clang attribute pop

/* How a trial was begun, and where it stands. ../trial.rs mirrors it. */
struct nr_trial {
	/* These two stay in their places, for other builds. */
	nr_u64 layout; /* LAYOUT of ../trial.rs */
	char control[NR_ARMS][TCP_CA_NAME_MAX];
	nr_u64 key[2];
	nr_u64 netns;	 /* cookie; 0: any */
	nr_u64 began_ns; /* CLOCK_MONOTONIC */
	nr_u64 ends_ns;
	nr_u32 share; /* of 2^32 */
	nr_u32 mptcp_only;
	nr_u32 jiffy_us;
	nr_u32 ports; /* how many */
	nr_u32 port[NR_TRIAL_PORTS];
	struct nr_trial_guards guards;
	nr_u64 limits[3]; /* as they were given, to be shown */
	/* By the program. */
	nr_u64 ended_ns;
	nr_u64 look_ns;	       /* the longest look took */
	nr_u64 drawn[NR_ARMS]; /* connections */
	nr_u64 living[NR_ARMS];
	nr_u64 others;	  /* connections that had another control */
	nr_u64 full;	  /* for which there was no room */
	nr_u64 refused;	  /* subflows to which the kernel would not give it */
	nr_u64 given;	  /* subflows that were given the control again */
	nr_u64 put_back;  /* subflows */
	nr_u32 ended;	  /* enum nr_trial_end */
	nr_u32 published; /* 0 or 1, see nr_trial_results */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, nr_u32);
	__type(value, struct nr_trial);
} nr_trial SEC(".maps");

/* 0 and 1: what was published last, and what is made; 2: of the connections that have ended. */
#define NR_CLOSED 2
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, nr_u32);
	__type(value, struct nr_trial_result);
} nr_trial_results SEC(".maps");

/* By arm, as of the end of a minute since the beginning. */
struct nr_trial_minute {
	struct nr_trial_sums arm[NR_ARMS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_TRIAL_MINUTES);
	__type(key, nr_u32);
	__type(value, struct nr_trial_minute);
} nr_trial_minutes SEC(".maps");

struct nr_trial_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, nr_u32);
	__type(value, struct nr_trial_timer);
} nr_trial_timers SEC(".maps");

/* Of plain TCP: the cookie with this bit; of MPTCP: the local token. */
#define NR_PLAIN_KEY (1ull << 63)

struct nr_trial_slot {
	nr_u64 sk; /* 0: free */
	nr_u64 cookie;
};

struct nr_trial_conn {
	struct bpf_spin_lock lock;
	nr_u32 arm;
	nr_u64 key;
	nr_u32 dead; /* no subflow is left: nobody may join */
	nr_u32 used; /* bitmap of slots */
	nr_u32 lost; /* looks in a row at which no socket was found */
	nr_u32 reserved;
	struct nr_outcome past; /* of its closed subflows */
	nr_u64 acked;		/* at the last look */
	struct nr_trial_slot slot[NR_MAX_PATHS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NR_TRIAL_CONNS);
	__type(key, nr_u64);
	__type(value, struct nr_trial_conn);
} nr_trial_conns SEC(".maps");

/* What a socket is in the trial. */
struct nr_trial_sock {
	nr_u64 key;
	nr_u32 slot;
	nr_u32 arm;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nr_trial_sock);
} nr_trial_socks SEC(".maps");

static __always_inline struct nr_trial *the_trial(void)
{
	nr_u32 zero = 0;

	return bpf_map_lookup_elem(&nr_trial, &zero);
}

static __always_inline struct nr_trial_result *results(nr_u32 index)
{
	return bpf_map_lookup_elem(&nr_trial_results, &index);
}

/* The first end counts. */
static __always_inline void end(struct nr_trial *t, nr_u32 why)
{
	if (!NR_CAS(&t->ended, NR_TRIAL_RUNS, why))
		t->ended_ns = bpf_ktime_get_ns();
}

static __always_inline bool runs(struct tcp_sock *tp, const char *control)
{
	char name[TCP_CA_NAME_MAX] = {};

	BPF_CORE_READ_INTO(&name, tp, inet_conn.icsk_ca_ops, name);
	for (int i = 0; i < TCP_CA_NAME_MAX; i++)
		if (name[i] != control[i])
			return false;
	return true;
}

/* Has its route a control that no socket may change (congctl lock of ip route)? */
static __always_inline bool is_locked(struct tcp_sock *tp)
{
	struct inet_connection_sock___trial *icsk = (void *)tp;

	return BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_dst_locked);
}

/* What is known of a subflow, added to its connection; by probe, as the timer has no reference. */
static __always_inline void add(struct nr_outcome *o, const struct tcp_sock *tp, nr_u32 jiffy_us)
{
	const struct tcp_sock___trial *more = (const void *)tp;
	nr_u64 acked = BPF_CORE_READ(more, bytes_acked), busy = 0;
	nr_u32 kind = BPF_CORE_READ_BITFIELD_PROBED(more, chrono_type);
	nr_u32 srtt = BPF_CORE_READ(tp, srtt_us) / 8, stat[3] = {};

	BPF_CORE_READ_INTO(&stat, more, chrono_stat);
	busy = (nr_u64)stat[0] + stat[1] + stat[2];
	if (kind) {
		/* Another CPU may begin it anew in between. */
		nr_s32 more_busy = (nr_u32)bpf_jiffies64() - BPF_CORE_READ(more, chrono_start);

		busy += more_busy > 0 ? more_busy : 0;
	}
	busy = busy * jiffy_us / 1000;
	/* Subflows are busy at the same time: that of the one that was longest. */
	if (busy > o->busy_ms)
		o->busy_ms = busy;
	o->bytes += acked;
	o->segs += BPF_CORE_READ(more, data_segs_out);
	o->retrans += BPF_CORE_READ(more, total_retrans);
	if (BPF_CORE_READ(tp, is_mptcp)) {
		struct mptcp_subflow_context *subflow = BPF_CORE_READ(tp, inet_conn.icsk_ulp_data);
		struct mptcp_sock___trial *msk = (void *)BPF_CORE_READ(subflow, conn);

		if (bpf_core_field_exists(msk->bytes_acked) && msk)
			o->mptcp_bytes = BPF_CORE_READ(msk, bytes_acked);
	}
	if (acked > 1) {
		o->paths++;
		o->srtt_us += srtt;
	}
}

/*
 * The sum of srtt becomes the mean, and the bytes those of the MPTCP socket, where it counts them:
 * after a fallback, with its one subflow, it does not.
 */
static __always_inline void finish(struct nr_outcome *o)
{
	if (o->mptcp_bytes && (o->paths > 1 || o->mptcp_bytes > o->bytes))
		o->bytes = o->mptcp_bytes;
	if (o->paths)
		o->srtt_us /= o->paths;
}

/*
 * A subflow gets a slot, the `first` with a new entry in arm `arm`; returns the connection's arm,
 * or -1: it is in none.
 */
static __always_inline int join(struct nr_trial *t, nr_u64 key, nr_u64 sk, nr_u64 cookie,
				nr_u32 arm, bool first, nr_u32 *slot)
{
	struct nr_trial_conn *c;
	int found = -1;

	if (first) {
		struct nr_trial_conn new = {.arm = arm, .key = key};

		if (bpf_map_update_elem(&nr_trial_conns, &key, &new, BPF_NOEXIST)) {
			__sync_fetch_and_add(&t->full, 1);
			return -1;
		}
	}
	c = bpf_map_lookup_elem(&nr_trial_conns, &key);
	if (!c)
		return -1;
	bpf_spin_lock(&c->lock);
	if (c->key == key && !c->dead) {
		for (int i = 0; i < NR_MAX_PATHS; i++)
			if (found < 0 && !(c->used & 1u << i)) {
				c->used |= 1u << i;
				c->slot[i].sk = sk;
				c->slot[i].cookie = cookie;
				*slot = i;
				found = c->arm & 1;
			}
	}
	bpf_spin_unlock(&c->lock);
	if (first && found >= 0) {
		__sync_fetch_and_add(&t->drawn[found & 1], 1);
		__sync_fetch_and_add(&t->living[found & 1], 1);
	}
	return found;
}

/* A connection that has left no subflow is over. */
static __always_inline void over(struct nr_trial *t, nr_u64 key, nr_u32 arm, struct nr_outcome *all)
{
	struct nr_trial_result *r = results(NR_CLOSED);

	finish(all);
	__sync_fetch_and_add(&t->living[arm & 1], -1);
	if (r && !t->ended && nr_trial_counts(all))
		nr_trial_count(&r->arm[arm & 1], all);
	bpf_map_delete_elem(&nr_trial_conns, &key);
}

/* A subflow gives its slot back, with what became of it. */
static __always_inline void leave(struct nr_trial *t, nr_u64 key, nr_u32 slot, nr_u64 sk,
				  const struct nr_outcome *here)
{
	struct nr_trial_conn *c = bpf_map_lookup_elem(&nr_trial_conns, &key);
	struct nr_outcome all;
	bool last = false;
	nr_u32 arm;

	if (!c)
		return;
	slot &= NR_MAX_PATHS - 1;
	bpf_spin_lock(&c->lock);
	if (c->key == key && !c->dead && c->slot[slot].sk == sk) {
		c->slot[slot].sk = 0;
		c->used &= ~(1u << slot);
		c->past.bytes += here->bytes;
		c->past.segs += here->segs;
		c->past.retrans += here->retrans;
		c->past.paths += here->paths;
		c->past.srtt_us += here->srtt_us;
		if (here->mptcp_bytes)
			c->past.mptcp_bytes = here->mptcp_bytes;
		if (here->busy_ms > c->past.busy_ms)
			c->past.busy_ms = here->busy_ms;
		last = c->dead = !c->used;
	}
	all = c->past;
	arm = c->arm;
	bpf_spin_unlock(&c->lock);
	if (last)
		over(t, key, arm, &all);
}

static __always_inline bool in_scope(const struct nr_trial *t, struct bpf_sock_ops *ops)
{
	nr_u32 local = ops->local_port, remote = bpf_ntohl(ops->remote_port);

	if (t->netns && bpf_get_netns_cookie(ops) != t->netns)
		return false;
	if (!t->ports)
		return true;
	for (int i = 0; i < NR_TRIAL_PORTS; i++)
		if (t->port[i] && (t->port[i] == local || t->port[i] == remote))
			return true;
	return false;
}

static __always_inline long give(void *to, const char *control)
{
	char name[TCP_CA_NAME_MAX];

	for (int i = 0; i < TCP_CA_NAME_MAX; i++)
		name[i] = control[i];
	return bpf_setsockopt(to, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
}

/* A connection, or another subflow of one, is established. */
static __always_inline void established(struct nr_trial *t, struct bpf_sock_ops *ops,
					struct bpf_sock *sk, struct tcp_sock *tp)
{
	nr_u32 token = mptcp_token((struct sock *)tp), slot = 0, drawn, flags;
	nr_u64 key = token, cookie;
	const struct nr_outcome nothing = {};
	struct mptcp_subflow_context *subflow;
	struct nr_trial_sock *s;
	bool first = true;
	long refused;
	int arm;

	if (t->mptcp_only && !token)
		return;
	cookie = bpf_get_socket_cookie(ops);
	if (token) {
		subflow = subflow_ctx((struct sock *)tp);
		first = !BPF_CORE_READ_BITFIELD_PROBED(subflow, mp_join);
	} else {
		key = cookie | NR_PLAIN_KEY;
	}
	if (first) {
		if (NR_READ(t->ended) || !in_scope(t, ops))
			return;
		if (!runs(tp, t->control[0]) || is_locked(tp)) {
			__sync_fetch_and_add(&t->others, 1);
			return;
		}
	}
	drawn = nr_siphash(t->key[0], t->key[1], key, 0) >> 32 < t->share;
	arm = join(t, key, (nr_u64)tp, cookie, drawn, first, &slot);
	if (arm < 0)
		return;
	s = bpf_sk_storage_get(&nr_trial_socks, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s) {
		leave(t, key, slot, (nr_u64)tp, &nothing);
		return;
	}
	s->key = key;
	s->slot = slot;
	s->arm = arm;
	flags = ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG;
	if (arm) {
		flags |= BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_RTO_CB_FLAG;
		/* The control is not there, or is going away. */
		refused = NR_READ(t->ended) ? 0 : give(ops, t->control[1]);
		if (refused == -ENOENT || refused == -EBUSY)
			end(t, NR_TRIAL_GONE);
		else if (refused)
			__sync_fetch_and_add(&t->refused, 1);
	}
	bpf_sock_ops_cb_flags_set(ops, flags);
}

/* A round trip, or a timeout, of a socket of the trial's arm: it has the control that it is to
 * have. */
static __always_inline void keep(struct nr_trial *t, struct bpf_sock_ops *ops, struct bpf_sock *sk,
				 struct tcp_sock *tp)
{
	struct nr_trial_sock *s = bpf_sk_storage_get(&nr_trial_socks, sk, NULL, 0);

	if (!s || !s->arm)
		return;
	if (NR_READ(t->ended)) {
		if (runs(tp, t->control[1]) && !give(ops, t->control[0]))
			__sync_fetch_and_add(&t->put_back, 1);
	} else if (runs(tp, t->control[0]) && !give(ops, t->control[1])) {
		__sync_fetch_and_add(&t->given, 1);
	}
}

/* A socket closes. */
static __always_inline void closed(struct nr_trial *t, struct bpf_sock *sk, struct tcp_sock *tp)
{
	struct nr_trial_sock *s = bpf_sk_storage_get(&nr_trial_socks, sk, NULL, 0);
	struct nr_outcome here = {};

	if (!s)
		return;
	add(&here, tp, t->jiffy_us);
	leave(t, s->key, s->slot, (nr_u64)tp, &here);
}

SEC("sockops")
int nr_trial_sockets(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	struct nr_trial *t = the_trial();

	if (!tp || !t)
		return 1;
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		established(t, ops, sk, tp);
		break;
	case BPF_SOCK_OPS_RTT_CB:
	case BPF_SOCK_OPS_RTO_CB:
		keep(t, ops, sk, tp);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ops->args[1] == TCP_CLOSE)
			closed(t, sk, tp);
		break;
	}
	return 1;
}

/* Groups of the connection's paths by the masks of its control; 0: it has none, or one path. */
static __always_inline nr_u32 groups_of(nr_u64 key)
{
	nr_u32 token = (nr_u32)key, slots, groups = 0;
	struct nr_entry *e;
	nr_u64 masks;

	if (key & NR_PLAIN_KEY)
		return 0;
	e = nr_conns_lookup(&token);
	if (!e)
		return 0;
	slots = NR_READ(e->word) & NR_WORD_SLOTS;
	if (!(slots & (slots - 1)))
		return 0;
	masks = NR_READ(e->conn.masks);
	for (nr_u32 i = 0; i < NR_MAX_PATHS; i++) {
		nr_u32 below = masks >> (8 * i) & slots & ((1u << i) - 1);

		groups += (slots >> i & 1) & !below;
	}
	return groups;
}

struct look {
	struct nr_trial *trial;
	struct nr_trial_result *into;
};

/* Adds a living connection to what is made. */
static long look_at(void *map, const nr_u64 *key, struct nr_trial_conn *c, struct look *l)
{
	struct nr_outcome all = c->past;
	nr_u32 groups, waiting = 0, found = 0;

	if (!l->trial || !l->into)
		return 1;
	for (nr_u32 i = 0; i < NR_MAX_PATHS; i++) {
		struct tcp_sock *tp = (void *)c->slot[i].sk;
		const struct tcp_sock___trial *more = (const void *)tp;

		if (!tp ||
		    (nr_u64)BPF_CORE_READ((struct sock *)tp, __sk_common.skc_cookie.counter) !=
			c->slot[i].cookie)
			continue;
		found = 1;
		add(&all, tp, l->trial->jiffy_us);
		waiting |= BPF_CORE_READ(tp, write_seq) - BPF_CORE_READ(more, snd_una);
	}
	/* The program was not told that its sockets closed: another had taken the flags for it. */
	c->lost = found ? 0 : c->lost + 1;
	if (c->lost >= NR_TRIAL_LOST) {
		/* Linux 6.1 lets nobody lock what it has given a callback. */
		c = bpf_map_lookup_elem(&nr_trial_conns, key);
		if (!c)
			return 0;
		bpf_spin_lock(&c->lock);
		found = c->dead;
		c->dead = 1;
		bpf_spin_unlock(&c->lock);
		if (!found)
			over(l->trial, *key, c->arm, &all);
		return 0;
	}
	groups = groups_of(*key);
	if (groups)
		c->past.groups = all.groups = groups;
	finish(&all);
	if (waiting && all.bytes == c->acked)
		all.silent_ms = c->past.silent_ms += NR_TICK_NS / 1000000;
	c->acked = all.bytes;
	if (nr_trial_counts(&all))
		nr_trial_count(&l->into->arm[c->arm & 1], &all);
	return 0;
}

/* What is judged now: the connections that have ended, and those that live. */
NR_NOINLINE int make(struct nr_trial *t, nr_u32 into)
{
	struct nr_trial_result *past = results(NR_CLOSED), *now = results(into & 1);
	struct look l = {.trial = t, .into = now};

	if (!t || !past || !now)
		return 0;
	bpf_probe_read_kernel(now, sizeof(*now), past);
	bpf_for_each_map_elem(&nr_trial_conns, look_at, &l, 0);
	return 0;
}

/* As of a minute. */
static __always_inline void note_minute(struct nr_trial *t, const struct nr_trial_result *now,
					nr_u64 at_ns)
{
	nr_u32 minute = (at_ns - t->began_ns) / (60 * NR_TICK_NS);
	struct nr_trial_minute *m = bpf_map_lookup_elem(&nr_trial_minutes, &minute);

	if (!m)
		return;
	for (nr_u32 arm = 0; arm < NR_ARMS; arm++) {
		struct nr_trial_sums all = {};

		for (nr_u32 i = 0; i < NR_TRIAL_STRATA; i++) {
			const struct nr_trial_sums *s = &now->arm[arm].sums[i];

			all.n += s->n;
			all.goodput += s->goodput;
			all.bytes += s->bytes;
			all.busy_ms += s->busy_ms;
			all.segs += s->segs;
			all.retrans_segs += s->retrans_segs;
			all.silent_ms += s->silent_ms;
			NR_FORGET();
		}
		m->arm[arm] = all;
	}
}

static int tick(void *map, int *key, struct nr_trial_timer *timer)
{
	struct nr_trial *t = the_trial();
	struct nr_trial_result *now;
	nr_u64 at_ns = bpf_ktime_get_ns(), took_ns;
	nr_u32 into, broken;

	if (!t || NR_READ(t->ended))
		return 0;
	into = !t->published;
	make(t, into);
	now = results(into);
	if (!now)
		return 0;
	NR_WRITE_BARRIER();
	NR_WRITE(t->published, into);
	note_minute(t, now, at_ns);
	broken = nr_trial_broken(now, &t->guards);
	took_ns = bpf_ktime_get_ns() - at_ns;
	if (took_ns > t->look_ns)
		t->look_ns = took_ns;
	if (broken)
		end(t, broken);
	else if (at_ns >= t->ends_ns)
		end(t, NR_TRIAL_TIME);
	else
		bpf_timer_start(&timer->timer, NR_TICK_NS, 0);
	return 0;
}

/* Begins to look once a second. Of this type, as the look takes locks: one that may sleep must not
 * in Linux 6.1. */
SEC("tc")
int nr_trial_start(struct __sk_buff *unused)
{
	struct nr_trial_timer *timer;
	nr_u32 zero = 0;

	timer = bpf_map_lookup_elem(&nr_trial_timers, &zero);
	if (!timer)
		return 1;
	/* CLOCK_MONOTONIC */
	if (bpf_timer_init(&timer->timer, &nr_trial_timers, 1) ||
	    bpf_timer_set_callback(&timer->timer, tick) ||
	    bpf_timer_start(&timer->timer, NR_TICK_NS, 0))
		return 1;
	return 0;
}

/* Ends the trial, and puts the living sockets of its arm back, those of the namespace that reads
 * this. */
SEC("iter/tcp")
int nr_trial_put_back(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : NULL;
	struct nr_trial *t = the_trial();
	struct nr_trial_sock *s;

	if (!t)
		return 0;
	end(t, NR_TRIAL_STOPPED);
	if (!tp)
		return 0;
	s = bpf_sk_storage_get(&nr_trial_socks, tp, NULL, 0);
	if (s && s->arm && runs(tp, t->control[1]) && !give(tp, t->control[0]))
		__sync_fetch_and_add(&t->put_back, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
