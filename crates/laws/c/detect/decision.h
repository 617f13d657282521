/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a detector's observations, one per interval, to the decision which paths are coupled.
 *
 * An observation gives each member (a path, or a flow of a capture) a place: a group, "not
 * congested", or undecided. A decision uses the newest observations (MPTCP-SBD, section III-B: of
 * 10, two paths are grouped if they were together in at least 5).
 */
#ifndef NARROWS_DETECT_DECISION_H
#define NARROWS_DETECT_DECISION_H

#include "../narrows.h"
#include "../param.h"

/* Maximum number of members; more than the paths of a connection only for captures (many.c). */
#ifndef NR_DETECT_MAX
#define NR_DETECT_MAX NR_MAX_PATHS
#endif

/* Places: groups are numbered from 0. */
#define NR_CLEAR 0xfe	  /* not congested */
#define NR_UNDECIDED 0xff /* not enough is known */

/* The paths that a path is coupled with besides its group. */
enum nr_couple {
	NR_COUPLE_NONE = 0,
	NR_COUPLE_UNDECIDED, /* the undecided ones */
	NR_COUPLE_ALL,
};

/* Observations that are kept. */
#define NR_OBSERVATIONS 32

#define NR_DECISION_PARAMS(P)                                                                      \
	P(observations, observations, COUNT, 10, 1, 32, "newest observations used in a decision",  \
	  "MPTCP-SBD, section III-B")                                                              \
	P(together, together, COUNT, 5, 1, 32,                                                     \
	  "observations in the same group that couple two paths", "MPTCP-SBD, section IV-B")       \
	P(every, every, COUNT, 10, 1, 1000, "observations between decisions",                      \
	  "MPTCP-SBD, section III-B")                                                              \
	P(undecided, undecided, COUPLE, NR_COUPLE_ALL, 0, 2,                                       \
	  "paths that an undecided path is coupled with", "MPTCP-SBD, its implementation")         \
	P(clear, clear, COUPLE, NR_COUPLE_NONE, 0, 2,                                              \
	  "paths that an uncongested path is coupled with", "MPTCP-SBD, section III-B")            \
	P(clear_always, clear_always, SWITCH, 0, 0, 1,                                             \
	  "a path is uncongested only if it was in all its observations, not in most",             \
	  "MPTCP-SBD, its user-space implementation")                                              \
	P(grouped, grouped, COUPLE, NR_COUPLE_UNDECIDED, 0, 2,                                     \
	  "paths that a grouped path is coupled with besides its group",                           \
	  "MPTCP-SBD, its implementation")
NR_PARAMS(decision, NR_DECISION_PARAMS);

#if NR_DETECT_MAX <= 8
/* One word, for concurrent readers: the stamp, and 4 bits per path. */
struct nr_places {
	nr_u64 word;
};

NR_INLINE struct nr_places nr_places(nr_u32 stamp, const nr_u8 *place)
{
	struct nr_places o = {(nr_u64)stamp << 32};

	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		o.word |= (nr_u64)(place[i] & 0xf) << (4 * i);
	return o;
}

NR_INLINE nr_u32 nr_stamp(const struct nr_places *o)
{
	return (nr_u32)(o->word >> 32);
}

NR_INLINE nr_u32 nr_place(const struct nr_places *o, nr_u32 i)
{
	nr_u32 place = (nr_u32)(o->word >> (4 * (i & 7))) & 0xf;

	return place < 8 ? place : place | 0xf0;
}
#else
struct nr_places {
	nr_u32 stamp;
	nr_u8 place[NR_DETECT_MAX];
};

NR_INLINE struct nr_places nr_places(nr_u32 stamp, const nr_u8 *place)
{
	struct nr_places o = {.stamp = stamp};

	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		o.place[i] = place[i];
	return o;
}

NR_INLINE nr_u32 nr_stamp(const struct nr_places *o)
{
	return o->stamp;
}

NR_INLINE nr_u32 nr_place(const struct nr_places *o, nr_u32 i)
{
	return o->place[i];
}
#endif

/* When a detector decides, and how from its observations: one for each interval of t_us. */
struct nr_pace {
	nr_u32 t_us;
	nr_u32 settle_us;
	nr_u32 observations;
	nr_u32 together;
	nr_u32 every;
	nr_u32 hold_us; /* how long a group, once found, and a place are kept; or 0 */
};

/*
 * The newest observations: that of a stamp is at stamp % NR_OBSERVATIONS. With a hold also the
 * stamps at which decisions last found members i and j in one group; with j = i, a place for i.
 */
struct nr_ring {
	struct nr_places of[NR_OBSERVATIONS];
	nr_u32 found[NR_DETECT_MAX][NR_DETECT_MAX];
};

/*
 * Scratch of observations and decisions. In memory: BPF's stack is small, and tracked register
 * values would make the verifier explore every path.
 */
struct nr_scratch {
	nr_u64 present; /* members that published the interval */
	nr_u64 of;	/* members considered */
	nr_u64 near[NR_DETECT_MAX];
	nr_u64 nearest;
	nr_u32 value[NR_DETECT_MAX];
	nr_u32 next[NR_DETECT_MAX];
	nr_u32 since[NR_DETECT_MAX]; /* stamp of the interval before the member joined */
	nr_u32 stamp;		     /* of the newest observation */
	nr_u32 both;
	nr_u32 same;
	nr_u32 clear_always;	    /* not congested: in all places, else in most */
	nr_u8 place[NR_DETECT_MAX]; /* the result */
#if NR_DETECT_MAX <= 8
	/* Of a detector that knows pairs, as masks: who is known to share, and of whom nothing is
	 * known yet. */
	nr_u64 known;
	nr_u64 early;
	nr_u64 lossy; /* members whose losses are random */
#endif
};

/*
 * Does observation `o` count for member i? Older ones belong to the slot's previous member.
 */
NR_INLINE int nr_counts_for(const struct nr_pace *p, const struct nr_places *o,
			    const struct nr_scratch *d, nr_u32 i)
{
	return nr_stamp(o) && d->stamp - nr_stamp(o) < p->observations &&
	       (nr_s32)(nr_stamp(o) - d->since[i]) > 0;
}

/* Counts observation `o` for nr_together(): a step, for BPF's verifier and small stack. */
NR_NOINLINE int nr_count_place(const struct nr_pace *p, const struct nr_places *o,
			       struct nr_scratch *d, nr_u32 i, nr_u32 j)
{
	nr_u32 a, b;

	if (!p || !o || !d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	a = nr_place(o, i);
	b = nr_place(o, j);
	if (a == NR_UNDECIDED || b == NR_UNDECIDED || !nr_counts_for(p, o, d, i) ||
	    !nr_counts_for(p, o, d, j))
		return 0;
	d->both++;
	if (a == b && (a == NR_CLEAR) == (i == j))
		d->same++;
	return 1;
}

/*
 * Counts how often members i and j both had a place, `both`, and how often the same group, `same`;
 * with j = i, how often i was not congested.
 */
NR_NOINLINE int nr_together(const struct nr_pace *p, const struct nr_ring *ring,
			    struct nr_scratch *d, nr_u32 i, nr_u32 j)
{
	if (!p || !ring || !d)
		return 0;
	d->both = d->same = 0;
	/* The newest ones; the loop has a constant bound for BPF. */
	for (nr_u32 n = 0; n < NR_OBSERVATIONS; n++) {
		if (n >= p->observations)
			break;
		nr_count_place(p, &ring->of[(d->stamp - n) % NR_OBSERVATIONS], d, i, j);
	}
	return 1;
}

/*
 * Is what a decision says of members i and j `now` so, or was it less than hold_us ago? On another
 * CPU a later decision may have found it so since.
 */
NR_INLINE nr_u32 nr_held(const struct nr_pace *p, struct nr_ring *ring, const struct nr_scratch *d,
			 nr_u32 i, nr_u32 j, nr_u32 now)
{
	nr_u32 *found = &ring->found[i % NR_DETECT_MAX][j % NR_DETECT_MAX], stamp;

	if (!p->hold_us)
		return now;
	if (now) {
		NR_WRITE(*found, d->stamp);
		return 1;
	}
	stamp = NR_READ(*found);
	return stamp && (nr_s64)(nr_s32)(d->stamp - stamp) * p->t_us < p->hold_us &&
	       (nr_s32)(stamp - d->since[i % NR_DETECT_MAX]) > 0 &&
	       (nr_s32)(stamp - d->since[j % NR_DETECT_MAX]) > 0;
}

/*
 * Adds member i to d->of if it has a place; value[i] = 1 if it is not congested in case it is
 * alone.
 */
NR_NOINLINE int nr_know(const struct nr_pace *p, struct nr_ring *ring, struct nr_scratch *d,
			nr_u32 i)
{
	if (!p || !ring || !d)
		return 0;
	i %= NR_DETECT_MAX;
	nr_together(p, ring, d, i, i);
	d->near[i] = 1ull << i;
	d->value[i] = d->clear_always ? d->same && d->same == d->both : d->same * 2 > d->both;
	if (nr_held(p, ring, d, i, i, d->both >= p->together))
		d->of |= 1ull << i;
	return 1;
}

/* Members i and j of d->of are near each other if they are in one group. */
NR_NOINLINE int nr_meet(const struct nr_pace *p, struct nr_ring *ring, struct nr_scratch *d,
			nr_u32 i, nr_u32 j)
{
	if (!p || !ring || !d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	if (!(d->of >> i & d->of >> j & 1))
		return 0;
	nr_together(p, ring, d, i, j);
	if (!nr_held(p, ring, d, i, j,
		     d->same && d->same * p->observations >= p->together * d->both))
		return 0;
	d->near[i] |= 1ull << j;
	d->near[j] |= 1ull << i;
	return 1;
}

/*
 * Bit j of near[i], and bit i of near[j], mean that members i and j belong together. Sets the group
 * of each member, the number of the group's first member, and near[i] to the members of the group
 * (Warshall's closure).
 */
NR_NOINLINE int nr_components(struct nr_scratch *d)
{
	if (!d)
		return 0;
	for (nr_u32 j = 0; j < NR_DETECT_MAX; j++)
		for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
			d->near[i] |= d->near[j] & (0 - (d->near[i] >> j & 1));
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		nr_u64 all = d->near[i] | 1ull << i;

		d->place[i] = (nr_u8)(63 - NR_CLZ64(all & (0 - all)));
	}
	return 1;
}

/*
 * Decides from the observations in `ring` up to d->stamp.
 *
 * A member with fewer places than `together` is undecided. Two members are grouped if they were in
 * the same group in `together` of `observations`, or in that share of those in which both had a
 * place: a tie groups. Groups are the connected components. If a and b, and b and c, share a
 * bottleneck often enough and a and c just not, sharing is the better and safer guess; and unlike a
 * greedy pass (the authors' kernel) it does not depend on the order. A member in no group with
 * another is not congested if it was so in most of its places, or if asked for in all. With a hold,
 * two members that a decision grouped stay so for that long, and a member keeps a place.
 */
NR_INLINE void nr_filter(const struct nr_pace *p, const struct nr_decision_params *decision,
			 struct nr_ring *ring, struct nr_scratch *d)
{
	d->of = 0;
	d->clear_always = decision->clear_always;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		nr_know(p, ring, d, i);
	for (nr_u32 i = 1; i < NR_DETECT_MAX; i++)
		for (nr_u32 j = 0; j < i; j++)
			nr_meet(p, ring, d, i, j);
	nr_components(d);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		if (!(d->of >> i & 1))
			d->place[i] = NR_UNDECIDED;
		else if (d->near[i] == 1ull << i && d->value[i])
			d->place[i] = NR_CLEAR;
	}
}

/* The members, enum nr_couple, that one in `place` is coupled with. */
NR_INLINE nr_u32 nr_asks(const struct nr_decision_params *p, nr_u32 place)
{
	return place == NR_UNDECIDED ? p->undecided : place == NR_CLEAR ? p->clear : p->grouped;
}

#if NR_DETECT_MAX <= 8
/*
 * Coupling is mutual: two paths are coupled if they are in one group, or if the parameters of
 * either couple it with the other. By default an undecided path is coupled with all, an uncongested
 * one with none, a grouped one with the undecided ("they might appear in the group at any moment").
 */
NR_NOINLINE nr_u32 nr_asks_for(const struct nr_decision_params *p, const struct nr_scratch *d,
			       nr_u32 i, nr_u32 j)
{
	nr_u32 asks, to, from;

	if (!p || !d)
		return 1;
	from = d->place[i & 7];
	to = d->place[j & 7];
	asks = nr_asks(p, from);
	return asks == NR_COUPLE_ALL || (asks == NR_COUPLE_UNDECIDED && to == NR_UNDECIDED) ||
	       (from < NR_MAX_PATHS && from == to);
}

/* The paths that are known to share, where places alone tell: those of one group. */
NR_INLINE nr_u64 nr_group_masks(const struct nr_scratch *d)
{
	nr_u64 masks = NR_MASKS_DISJOINT;

	for (nr_u32 i = 0; i < NR_MAX_PATHS; i++)
		for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
			nr_u64 same = d->place[i] == d->place[j] && d->place[i] < NR_MAX_PATHS;

			masks |= same << (8 * i + j);
		}
	return masks;
}

NR_INLINE nr_u64 nr_decided_masks(const struct nr_decision_params *p, const struct nr_scratch *d)
{
	nr_u64 masks = NR_MASKS_DISJOINT;

	for (nr_u32 i = 0; i < NR_MAX_PATHS; i++) {
		for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
			nr_u64 asks = nr_asks_for(p, d, i, j) & 1;

			masks |= asks << (8 * i + j) | asks << (8 * j + i);
		}
	}
	return masks;
}
#endif

#endif
