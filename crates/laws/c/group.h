/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A group is one flow: the paths that are known to share a bottleneck grow together by what one
 * flow would grow by, and a congestion event of one is an event of all. A law plugs in how far a
 * window is cut (nr_group_cut) and by how much the flow grows (a multiple of nr_group_credit);
 * laws/greno.h, laws/gcubic.h.
 *
 * Source: docs/method/one-flow.md; one state for flows that share a bottleneck: RFC 8699.
 *
 *   r0_i   RTT of path i, without the time that a packet waited for a second one to be acknowledged
 *   f_i    share of its acknowledgements that are of two packets or more
 *   r_i    (srtt_i + f_i r0_i) / (1 + f_i), RTT of a packet in the mean: of two only one waits
 *   X      sum_k w_k / r_k, rate of the group, packets/s
 *   g      min_k r0_k, RTT of one flow on the best path if none of its packets waits
 *   G      g + z / X, as some do
 *   V      X G, its window at this rate
 *
 * Every second packet of the one flow waits for 1 / X if they are evenly spaced, so z = 1/2, and
 * none if they leave in pairs, z = 0. What each law has is measured, not derived.
 *
 * Such a flow adds a packet each G, so its rate rises by dX/dt = 1 / G^2. If each acknowledged
 * packet adds q_i to w_i, then dX/dt = sum_i q_i w_i / r_i^2. Windows that grow alike have
 *
 *   q_i = 1 / (w_i G^2 sum_k 1 / r_k^2)
 *
 * and become equal, so that every path is used and a detector can measure it; nor does one of them
 * grow large beside others that are too small to be halved.
 *
 * Congestion events: a path that reduces publishes the time. Its siblings follow at their next
 * event of any kind but a timeout: they cut their windows once. What was sent until the event is of
 * it, lost or not (RFC 9002, section 7.3.2); where the host does not say when that was, what is
 * lost or marked until as many packets are delivered as were out when the path followed. A timeout
 * is the path's own. If a path's own reduction is undone, it has the window from before that, less
 * the cuts that it has followed since.
 *
 * Groups that may share a bottleneck, which is not known, are flows of their own that are linked as
 * the paths of RFC 6356 are: one is not cut for the losses of another, and grows by the part
 *
 *   phi_f = min(1, v_f max_m(a_m) / x^2)   of what it would grow by alone,
 *
 *   v_f    x_f min_k r0_k, window of group f
 *   a_f    sum_k w_k / r_k^2
 *   x      sum of x_f = sum_k w_k / r_k over all groups
 *
 * so that all together have what one flow has on the best of their bottlenecks, whether they are
 * one or several. (Of groups other than the path's own each path counts as one.) Where a window is
 * in proportion to the loss rate to the power of -b, b = 1/2 for Reno, this needs another factor of
 * (max_m(a_m) / sum_m(a_m))^(b / (1 - b) - 1), for CUBIC with b = 3/4 its square.
 *
 * Published: word[0] is the time of the path's last congestion event, us | 1, for a second, else 0;
 * word[1] is r0 in 1/8 us, at most 16 s, and f in 1/31 in the lowest NR_GROUP_PAIR_BITS.
 */
#ifndef NARROWS_GROUP_H
#define NARROWS_GROUP_H

#include "flows.h"
#include "laws/reno.h"

/* Siblings follow an event within this time. Those that carry data have one each round trip. */
#define NR_GROUP_EVENT_US 1000000u

/* An acknowledgement later than this, 1/8 us, may have waited: half of Linux's TCP_DELACK_MIN, 40
 * ms (NR_DELACK_US of the detectors). */
#define NR_GROUP_WAIT8 (8 * 20000u)

/* Linux reports a timeout as a loss, and a few instructions later as a timeout. */
#define NR_GROUP_TIMEOUT_US 1000u

/* TCP_DELACK_MIN of Linux, 1/8 us: what a packet alone waits for its acknowledgement. */
#define NR_GROUP_ALONE8 (8 * 40000u)

#define NR_GROUP_PAIR_BITS 5
#define NR_GROUP_PAIRS ((1u << NR_GROUP_PAIR_BITS) - 1)
#define NR_GROUP_RTT_US (1u << 24)

#define NR_GROUP_BITS 16 /* of the fraction of a window */
#define NR_GROUP_ONE (1u << NR_GROUP_BITS)

struct nr_group {
	nr_u64 cut_us;	    /* time of the last congestion event, own or followed; 0: none */
	nr_u64 mask_us;	    /* when the group last gained a path */
	nr_u64 certain_us;  /* last certain sample of r0 */
	nr_u32 out;	    /* packets out when the path followed, less those delivered since */
	nr_u32 prior;	    /* word[0] before the path's last own event */
	nr_u32 even;	    /* e_i of laws/gcubic.h, Q8 packets: here it fills a hole */
	nr_u16 rest;	    /* cut less window, 2^-16 packet: credit when growth begins */
	nr_u16 pairs;	    /* f in 2^-16 */
	nr_u8 mask;	    /* of the group, at the last event */
	nr_u8 deficit : 1;  /* the rest is negative */
	nr_u8 odd : 1;	    /* the rest is a packet more, as the window is even */
	nr_u8 followed : 1; /* the last was a sibling's, with no timeout since */
};
NR_STATIC_ASSERT(sizeof(struct nr_group) <= sizeof(nr_u64[NR_LAW_WORDS - NR_KEPT_WORDS]),
		 "a group's state leaves room for growth that is kept");

NR_INLINE struct nr_group *nr_group(struct nr_private *p)
{
	return (struct nr_group *)p->law;
}

/* A law's cut: from a window, in 2^-16 packet, of one of n members. */
typedef nr_u64 nr_group_cut(nr_u64 window, nr_u32 n);

/* r0 of a path, 1/8 us; srtt if that is less or there is no sample. */
NR_INLINE nr_u32 nr_group_r0(const struct nr_path *line, nr_u32 srtt8)
{
	nr_u32 r0 = NR_READ(line->word[1]) >> NR_GROUP_PAIR_BITS;

	return r0 && r0 < srtt8 ? r0 : srtt8;
}

/* r of a path, 1/8 us: r0 and what a packet waits in the mean. */
NR_INLINE nr_u32 nr_group_r(const struct nr_path *line, nr_u32 srtt8)
{
	nr_u32 r0 = nr_group_r0(line, srtt8), f = NR_READ(line->word[1]) & NR_GROUP_PAIRS;

	return r0 + (nr_u32)((nr_u64)(srtt8 - r0) * NR_GROUP_PAIRS / (NR_GROUP_PAIRS + f));
}

/* g of the paths in `set`, 1/8 us. */
NR_NOINLINE nr_u32 nr_group_rtt(const struct nr_conn *c, nr_u32 set)
{
	nr_u32 least = ~0u;

	if (!c)
		return 0;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 r0 =
		    set >> j & 1 ? nr_group_r0(&c->path[j], NR_READ(c->path[j].srtt8_us)) : 0;

		if (r0 && r0 < least)
			least = r0;
	}
	return least;
}

/* Time since the newest event of i's siblings in `set`, us; at least NR_GROUP_EVENT_US: none. */
NR_NOINLINE nr_u32 nr_group_newest(const struct nr_conn *c, nr_u32 i, nr_u32 set, nr_u32 now)
{
	nr_u32 age = NR_GROUP_EVENT_US;

	if (!c)
		return age;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 time = (set >> j & 1) && j != i ? NR_READ(c->path[j].word[0]) : 0;

		/* A sibling's clock may be ahead: then the difference is huge. */
		if (time && (now | 1) - time < age)
			age = (now | 1) - time;
	}
	return age;
}

/* What the last cut left beside the window, 2^-16 packet, unless the host has set another window.
 */
NR_INLINE nr_s32 nr_group_rest(struct nr_private *p)
{
	struct nr_group *g = nr_group(p);
	nr_s32 rest = (nr_s32)g->rest + (g->odd ? (nr_s32)NR_GROUP_ONE : 0);

	return p->cwnd > p->ssthresh ? 0 : g->deficit ? -rest : rest;
}

/* The path's window with its fraction, 2^-16 packet. Credit is above -1, and not below 0 beside a
 * rest. */
NR_INLINE nr_u64 nr_group_window(struct nr_private *p)
{
	nr_u64 credit = (nr_u64)(p->credit + (nr_s64)NR_ONE) >> (NR_CREDIT_BITS - NR_GROUP_BITS);

	return (p->cwnd - 1) * (nr_u64)NR_GROUP_ONE + credit + (nr_s64)nr_group_rest(p);
}

/*
 * Least window after a cut of the paths in `set`, 2^-16 packet: two, or one if n members with two
 * packets each would be further from one flow than with one, which waits for D = 40 ms alone. One
 * flow that is as small has at least 5/2 packets in g, the mean from its floor of 2 to 3 and back.
 * With two packets members have up to n times its rate, with one as little as n / (g + D) of
 * (5/2) / g: two if n < 5 (g + D) / (2 n g).
 */
NR_NOINLINE nr_u64 nr_group_floor(const struct nr_conn *c, nr_u32 set)
{
	nr_u32 n = NR_ONES64(set), rtt8;

	if (!c)
		return 0;
	rtt8 = nr_group_rtt(c, set);
	if (n == 1 || 2ull * n * n * rtt8 < 5 * ((nr_u64)rtt8 + NR_GROUP_ALONE8))
		return 2 * NR_GROUP_ONE;
	return NR_GROUP_ONE;
}

/* A window, packets, less a cut that leaves `less`, 2^-16 packet. */
NR_NOINLINE nr_u32 nr_group_least(nr_u32 window, nr_u64 less, nr_u64 floor)
{
	less = (less > floor ? less : floor) / NR_GROUP_ONE;
	return less < window ? (nr_u32)less : window;
}

/* A window that is not in use now, after a cut; packets. */
NR_INLINE nr_u32 nr_group_less(const struct nr_conn *c, nr_u32 window, nr_u32 set, nr_group_cut cut)
{
	return nr_group_least(window, cut(window * (nr_u64)NR_GROUP_ONE, NR_ONES64(set)),
			      nr_group_floor(c, set));
}

/*
 * The even window for `window`, both 2^-16 packet (nr_pair_need); records what is left. Two packets
 * are acknowledged together: of an odd window one always waits for the next round's first, and its
 * place in a full queue is open for others.
 */
NR_INLINE nr_u64 nr_group_even(struct nr_group *g, nr_u64 window)
{
	nr_u64 even = (window + NR_GROUP_ONE / 2) / (2 * NR_GROUP_ONE) * (2 * NR_GROUP_ONE);

	g->deficit = even > window;
	g->odd = even + NR_GROUP_ONE <= window;
	g->rest = (nr_u16)(g->deficit ? even - window : window % NR_GROUP_ONE);
	return even;
}

/*
 * The window after a cut, whole packets. Its fraction stays as credit; so does, below zero, what a
 * window at the floor is above the cut, at most a packet: a deficit, made up before the window
 * grows.
 */
NR_INLINE nr_u32 nr_group_reduced(NR_HOOK, nr_group_cut cut)
{
	struct nr_group *g = nr_group(p);
	nr_u32 set = nr_cut_together(c, i), n = NR_ONES64(set);
	nr_u64 window = nr_group_window(p), floor = nr_group_floor(c, set), less;

	window = cut(window > NR_GROUP_ONE ? window : NR_GROUP_ONE, n);
	g->deficit = window < floor;
	g->odd = 0;
	if (g->deficit) {
		less = n > 1 ? floor - window : 0;
		g->rest = (nr_u16)(less < NR_GROUP_ONE ? less : NR_GROUP_ONE - 1);
		window = floor;
	} else if (n > 1 && window >= NR_PAIRS_FROM * NR_GROUP_ONE - NR_GROUP_ONE / 2 &&
		   window < NR_PAIRS_TO * NR_GROUP_ONE) {
		window = nr_group_even(g, window);
	} else {
		g->rest = (nr_u16)(window % NR_GROUP_ONE);
	}
	return (nr_u32)(window / NR_GROUP_ONE);
}

/*
 * The path follows an event. On its way back to ssthresh, after a timeout or idleness, both are
 * cut.
 */
NR_INLINE void nr_group_cut_windows(NR_HOOK, nr_group_cut cut)
{
	struct nr_group *g = nr_group(p);
	nr_u32 set = nr_cut_together(c, i), cwnd = p->cwnd, ssthresh = p->ssthresh, reduced;

	reduced = nr_group_reduced(NR_ARGS, cut);
	if (!nr_first_slow_start(p) && cwnd < ssthresh) {
		g->rest = 0;
		g->odd = 0;
		ssthresh = nr_group_less(c, ssthresh, set, cut);
	} else {
		ssthresh = reduced;
	}
	nr_set_ssthresh(c, i, p, ssthresh);
	p->credit = 0;
	if (reduced < cwnd)
		nr_set_cwnd(c, i, p, reduced);
	if (p->prior_cwnd) { /* an undo of its own reduction leaves this one */
		int below = p->prior_cwnd < p->prior_ssthresh;

		if (p->prior_ssthresh == NR_SSTHRESH_MAX || !below)
			p->prior_ssthresh = p->prior_cwnd;
		p->prior_cwnd = nr_group_less(c, p->prior_cwnd, set, cut);
		p->prior_ssthresh = nr_group_less(c, p->prior_ssthresh, set, cut);
	}
}

/*
 * Before any event: cuts the window if a sibling had an event that this path has not followed;
 * returns 1 if it did.
 */
NR_INLINE int nr_group_follow(NR_HOOK, nr_group_cut cut)
{
	struct nr_group *g = nr_group(p);
	struct nr_path *line = &c->path[i & 7];
	nr_u32 mask = nr_cut_mask(c, i), now = (nr_u32)ev->now_us, word = line->word[0];
	nr_u32 set, age, rtt8, r8, held;

	if (mask & ~g->mask)
		g->mask_us = ev->now_us;
	g->mask = (nr_u8)mask;
	/* Before the clock of 32 bits repeats, or after it has: the path may have been silent. */
	if (word &&
	    ((now | 1) - word >= NR_GROUP_EVENT_US || ev->now_us - g->cut_us >= NR_GROUP_EVENT_US))
		NR_WRITE(line->word[0], 0);
	/* Nothing arrives, so the path has no part in what its siblings lose. */
	if (ev->kind == NR_TIMEOUT)
		return 0;
	if (nr_group_newest(c, i, mask, now) >= NR_GROUP_EVENT_US)
		return 0;
	/* Nobody clears the time of a path that has fallen silent, and it seems new each 2^32 us.
	 */
	set = nr_cut_together(c, i);
	age = nr_group_newest(c, i, set, now);
	/* Events from before two masks merged, or before the path joined, are not its own. */
	if (age >= NR_GROUP_EVENT_US || age >= ev->now_us - g->mask_us)
		return 0;
	rtt8 = nr_group_rtt(c, set);
	/* Two paths may find the same event before they see each other's: one per round trip. */
	if (g->cut_us && ev->now_us - g->cut_us < age + rtt8 / 8)
		return 0;
	g->cut_us = ev->now_us - age;
	nr_group_cut_windows(NR_ARGS, cut);
	/*
	 * Without recovery: nothing leaves until what is out has shrunk to the window, and
	 * acknowledgements of one round trip of the flow do not grow it, as in a flow's recovery.
	 * Those of the rest of the path's own round trip come as fast as before the cut, and count
	 * as many as they would at the rate after it.
	 */
	g->out = ev->inflight + ev->delivered + ev->lost;
	if (!g->out && (ev->kind == NR_RECOVERY || ev->kind == NR_ECN))
		g->out = 1; /* the host has told before what was lost, or delivered with the mark */
	g->followed = 1;
	r8 = nr_group_r(line, NR_READ(line->srtt8_us));
	held = g->out < p->cwnd ? g->out : p->cwnd;
	p->skip = g->out - held + (rtt8 < r8 ? (nr_u32)((nr_u64)held * rtt8 / r8) : held);
	return 1;
}

/*
 * Is a congestion event that the host reports now the one that the path has followed? Also where
 * the siblings have fallen silent since, or the masks have split. A loss is found by later
 * deliveries, of which three are enough to count the last that were out as arrived: `out` is for
 * timeouts, and for hosts that do not know when it was sent.
 */
NR_INLINE int nr_group_followed(struct nr_private *p, const struct nr_event *ev)
{
	struct nr_group *g = nr_group(p);

	if (ev->kind == NR_TIMEOUT || !ev->sent_us)
		return g->out != 0;
	return g->followed && ev->sent_us <= g->cut_us;
}

/* ssthresh at the path's own congestion event. */
NR_INLINE nr_u32 nr_group_ssthresh(NR_HOOK, nr_group_cut cut)
{
	struct nr_group *g = nr_group(p);
	nr_u32 ssthresh;

	g->prior = c->path[i & 7].word[0];
	if (nr_group_followed(p, ev))
		return p->cwnd;
	ssthresh = nr_group_reduced(NR_ARGS, cut);
	g->cut_us = ev->now_us;
	g->followed = 0;
	g->out = 0;
	if (ev->kind != NR_TIMEOUT)
		NR_WRITE(c->path[i & 7].word[0], (nr_u32)ev->now_us | 1);
	return ssthresh;
}

/*
 * A timeout says nothing about the bottleneck: siblings that have not followed need not. What was
 * out is sent again, and losses from then on are another event.
 */
NR_INLINE void nr_group_timeout(NR_HOOK)
{
	nr_u32 word = c->path[i & 7].word[0];

	if (word && ((nr_u32)ev->now_us | 1) - word < NR_GROUP_TIMEOUT_US)
		NR_WRITE(c->path[i & 7].word[0], nr_group(p)->prior);
	nr_group(p)->out = 0;
	nr_group(p)->followed = 0;
}

/* The path's own event was none. */
NR_INLINE void nr_group_undo(NR_HOOK)
{
	NR_WRITE(c->path[i & 7].word[0], nr_group(p)->prior);
	nr_group(p)->rest = 0;
	nr_group(p)->odd = 0;
}

/*
 * r0, smoothed by 1/32: an acknowledgement of two packets did not wait, nor did an early one. If
 * there has been none for 1 s and 4 RTTs the path's RTT has risen, or it has only one packet out.
 * Not by 1/8 as srtt: g is the least of N such means, and the least is low by 0.6 (N = 2) to 1.4 (N
 * = 8) of their standard deviations, which with 1/8 are a quarter of that of a sample; the flow
 * grows by 1 / g^2.
 */
NR_INLINE void nr_group_acked(NR_HOOK)
{
	struct nr_group *g = nr_group(p);
	struct nr_path *line = &c->path[i & 7];
	nr_u32 r0 = line->word[1] >> NR_GROUP_PAIR_BITS, pairs = g->pairs;
	nr_u32 rtt_us = ev->rtt_us < NR_GROUP_RTT_US ? ev->rtt_us : NR_GROUP_RTT_US - 1;
	int certain;

	g->out -= ev->delivered < g->out ? ev->delivered : g->out;
	if (!rtt_us)
		return;
	if (!r0)
		pairs = 65535;
	pairs = ev->delivered >= 2 ? pairs + (65535 - pairs) / 32 : pairs - pairs / 32;
	g->pairs = (nr_u16)pairs;
	certain = !r0 || ev->delivered >= 2 || 8 * rtt_us < r0 + NR_GROUP_WAIT8;
	if (certain)
		g->certain_us = ev->now_us;
	if (certain || ev->now_us - g->certain_us > 1000000 + line->srtt8_us / 2)
		r0 = r0 ? r0 - r0 / 32 + rtt_us / 4 : 8 * rtt_us;
	NR_WRITE(line->word[1], r0 << NR_GROUP_PAIR_BITS | g->pairs >> (16 - NR_GROUP_PAIR_BITS));
}

/* Growth begins with the fraction that the cut left. */
NR_INLINE void nr_group_begin(NR_HOOK)
{
	struct nr_group *g = nr_group(p);

	p->credit += (nr_s64)nr_group_rest(p) * (1 << (NR_CREDIT_BITS - NR_GROUP_BITS));
	g->rest = 0;
	g->odd = 0;
}

/* What nr_group_sum adds up. */
enum nr_group_term {
	NR_GROUP_RATE,	  /* w / r */
	NR_GROUP_EQUAL,	  /* 1 / r^2 */
	NR_GROUP_WEIGHTED /* w / r^2 */
};

/*
 * A sum over the paths in `set`, as nr_fx_word(). One at a time: BPF's stack is small.
 */
NR_NOINLINE nr_u64 nr_group_sum(const struct nr_conn *c, nr_u32 set, nr_u32 what)
{
	struct nr_fx term[NR_MAX_PATHS];

	if (!c)
		return 0;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		nr_u32 srtt8 = set >> j & 1 ? NR_READ(c->path[j].srtt8_us) : 0;
		nr_u32 w = what == NR_GROUP_EQUAL ? 1 : NR_READ(c->path[j].cwnd);
		struct nr_fx inverse = nr_inverse(nr_group_r(&c->path[j], srtt8));

		term[j] = nr_fx_mul(nr_fx(w), inverse);
		if (what != NR_GROUP_RATE)
			term[j] = nr_fx_mul(term[j], inverse);
	}
	return nr_fx_word(nr_fx_sum(term));
}

/* G, as nr_fx_word(), with z in 1/8. */
NR_NOINLINE nr_u64 nr_group_round(const struct nr_conn *c, nr_u32 set, nr_u32 eighths)
{
	struct nr_fx rate, round;

	if (!c)
		return 0;
	rate = nr_fx_of(nr_group_sum(c, set, NR_GROUP_RATE));
	round = nr_fx_div(nr_fx(eighths), nr_fx_mul(nr_fx(8), rate));
	return nr_fx_word(nr_fx_add(nr_fx(nr_group_rtt(c, set)), round));
}

/* The largest w / r^2 of a path in `set`, as nr_fx_word(). */
NR_NOINLINE nr_u64 nr_group_best(const struct nr_conn *c, nr_u32 set)
{
	struct nr_fx best = nr_fx(0);

	if (!c)
		return 0;
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		struct nr_fx one;

		if (!(set >> j & 1))
			continue;
		one = nr_fx_of(nr_group_sum(c, 1u << j, NR_GROUP_WEIGHTED));
		best = nr_fx_less(best, one) ? one : best;
	}
	return nr_fx_word(best);
}

/*
 * phi of the group `group` among all in `set`, with the factor's exponent `power`, 0 or 2, as
 * nr_fx_word(); 1 if `set` is the group.
 */
NR_NOINLINE nr_u64 nr_group_part(const struct nr_conn *c, nr_u32 group, nr_u32 set, nr_u32 power)
{
	struct nr_fx one = nr_fx(1), best, own, all, part;

	if (!c || group == set)
		return nr_fx_word(one);
	best = nr_fx_of(nr_group_best(c, set));
	own = nr_fx_of(nr_group_sum(c, group, NR_GROUP_WEIGHTED));
	best = nr_fx_less(best, own) ? own : best;
	own = nr_fx_of(nr_group_sum(c, group, NR_GROUP_RATE));
	all = nr_fx_of(nr_group_sum(c, set, NR_GROUP_RATE));
	part = nr_fx_mul(own, nr_fx(nr_group_rtt(c, group)));
	part = nr_fx_div(nr_fx_mul(part, best), nr_fx_mul(all, all));
	part = nr_fx_less(one, part) ? one : part;
	all = nr_fx_of(nr_group_sum(c, set, NR_GROUP_WEIGHTED));
	best = nr_fx_div(best, all);
	return nr_fx_word(power ? nr_fx_mul(part, nr_fx_mul(best, best)) : part);
}

/*
 * q_i in packets, as nr_fx_word(): growth of path i for each acknowledged packet while the flow,
 * with the G in `round`, grows by a packet a round trip.
 */
NR_NOINLINE nr_u64 nr_group_credit(const struct nr_conn *c, nr_u32 i, nr_u32 set, nr_u64 round)
{
	struct nr_fx all;

	if (!c)
		return 0;
	all = nr_fx_of(nr_group_sum(c, set, NR_GROUP_EQUAL));
	all = nr_fx_mul(nr_fx_mul(nr_fx_of(round), nr_fx_of(round)), all);
	all = nr_fx_mul(all, nr_fx(NR_READ(c->path[i & 7].cwnd)));
	return nr_fx_word(nr_fx_div(nr_fx(1), all));
}

#endif
