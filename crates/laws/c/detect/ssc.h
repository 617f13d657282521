/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared bottleneck detection by summary statistics of delay. RFC 8382; with other parameters, an
 * earlier draft of it, MPTCP-SBD (Ferlin et al., INFOCOM 2016).
 *
 * For each interval of T, over its delays d:
 *     E_T       = mean of d
 *     mean      = mean of E_T of the last M intervals, without the open one
 *     skew_base = number of d < mean  -  number of d > mean
 *     var_base  = sum of |d - E_T of the interval before|
 * and at its end, sums over the last M intervals, with weights (section 4.1): M-F+1 for the newest
 * F, then M-F, M-F-1, .. 1; mean now with the interval that has ended:
 *     skew = sum skew_base / sum n            in -1..1; low where the queue is full
 *     var  = sum var_base / sum n
 *     freq = crossings / N: E_T beyond mean +- p_v var, on the other side than the last E_T that
 *            was beyond it, at any time; the first such E_T only sets the side
 *     loss = lost / (delivered + lost), over N intervals
 * Congested (section 3.3.1): skew < c_s, or skew < c_h and congested in the interval before, or
 * loss > p_l. For an uncongested interval var_base is omitted from the sum, though its samples
 * count, and no crossing is recorded (section 4.2).
 * Groups: the congested paths, divided where neighbours differ by p_f in freq, then by p_mad of the
 * higher in var, by p_s in skew, and if one loses more than p_l by p_d of the higher in loss.
 * If clocks drift (section 5.2), skew_base is relative to E_T of the interval before, not to mean,
 * and freq does not divide.
 *
 * MPTCP-SBD, equation 7, prints p_v times the mean delay as the half width of that band; var, as
 * in the RFC, is used here also with its parameters.
 *
 * Not specified there, chosen here: an interval without a delay, or with mostly application-limited
 * samples, is skipped: nothing is recorded, and sums and congestion state continue across it; after
 * N silent intervals, or if the delay moved by NR_SSC_RANGE (a clock was set), a path starts over.
 * An interval with neither mean nor E_T before it only contributes its E_T and losses. Equal values
 * are never divided.
 *
 * Range: delays within 4 s of a path's first, in us; means in 1/256 us; 2^18 samples an interval
 * (later ones are ignored). Estimates are within 2^-15, or 1/128 us, of real numbers.
 */
#ifndef NARROWS_DETECT_SSC_H
#define NARROWS_DETECT_SSC_H

#include "../detector.h"

#define NR_SSC_INTERVALS 64	  /* largest N and M */
#define NR_SSC_RANGE (1u << 22)	  /* us around the first delay */
#define NR_SSC_SAMPLES (1u << 18) /* of an interval */
#define NR_SSC_PACKETS (1u << 24) /* of an interval */
#define NR_SSC_FRACTION 8	  /* bits of a microsecond, in means */

#define NR_SSC_PARAMS(P)                                                                           \
	P(t_us, t_ms, MS, 350, 10, 10000, "length of an interval, T, ms", "RFC 8382, section 2.2") \
	P(n, n, COUNT, 50, 2, 64, "intervals for key frequency and loss, N",                       \
	  "RFC 8382, section 2.2")                                                                 \
	P(m, m, COUNT, 30, 2, 64, "intervals for mean, skewness and variability, M",               \
	  "RFC 8382, section 2.2")                                                                 \
	P(f, f, COUNT, 20, 1, 64, "newest intervals with full weight, F; m: equal weights",        \
	  "RFC 8382, section 2.2")                                                                 \
	P(c_s, c_s, SIGNED, 0.1, -1, 1, "skewness below which a path is congested",                \
	  "RFC 8382, section 2.2")                                                                 \
	P(c_h, c_h, SIGNED, 0.3, 0, 2, "the same, if congested in the interval before",            \
	  "RFC 8382, section 2.2")                                                                 \
	P(p_l, p_l, RATIO, 0.1, 0, 1,                                                              \
	  "loss ratio above which a path is congested at any skewness",                            \
	  "MPTCP-SBD, Table I (the RFC gives no value)")                                           \
	P(p_f, p_f, RATIO, 0.1, 0, 1, "maximum difference of key frequency in a group",            \
	  "RFC 8382, section 2.2")                                                                 \
	P(p_mad, p_mad, RATIO, 0.1, 0, 1,                                                          \
	  "maximum difference of variability in a group, relative to the higher",                  \
	  "RFC 8382, section 2.2")                                                                 \
	P(p_s, p_s, RATIO, 0.15, 0, 2, "maximum difference of skewness in a group",                \
	  "RFC 8382, section 2.2")                                                                 \
	P(p_d, p_d, RATIO, 0.1, 0, 1,                                                              \
	  "maximum difference of loss in a group, relative to the higher",                         \
	  "RFC 8382, section 2.2")                                                                 \
	P(p_v, p_v, RATIO, 0.7, 0, 10,                                                             \
	  "half width of the band without crossings, in variabilities", "RFC 8382, section 2.2")   \
	P(mask_noise, mask_noise, SWITCH, 1, 0, 1,                                                 \
	  "omission of variability and crossings of uncongested intervals",                        \
	  "RFC 8382, section 4.2")                                                                 \
	P(loss_for_skew, loss_for_skew, SWITCH, 0, 0, 1,                                           \
	  "division by loss instead of skewness if a path loses more than p_l",                    \
	  "MPTCP-SBD, its implementation")                                                         \
	P(clock_skew, clock_skew, SWITCH, 0, 0, 1, "drifting clocks of sender and receiver",       \
	  "RFC 8382, section 5.2")                                                                 \
	P(spacing_us, spacing_ms, MS, 0, 0, 100,                                                   \
	  "of the delays in so much time the first counts, ms; 0: all of them",                    \
	  "MPTCP-SBD, its implementation (5 ms unless set)")                                       \
	P(trusted, trusted, COUNT, 60, 1, 1000, "intervals until a path's estimates are trusted",  \
	  "RFC 8382: 2 M")                                                                         \
	P(hold_us, hold_s, SECONDS, 0, 0, 512,                                                     \
	  "time that paths stay coupled after the last decision that grouped them, s; 0: no hold", \
	  "arXiv:1812.05816, section 5.2 (100 s in its SSC-LIA)")
NR_PARAMS(ssc, NR_SSC_PARAMS);

/* What a path publishes for an interval. */
struct nr_ssc_summary {
	nr_s32 skew; /* Q16 */
	nr_u32 var;  /* 1/256 us */
	nr_u32 freq; /* Q16 */
	nr_u32 loss; /* Q16 */
	nr_u32 congested;
	nr_u32 trusted;
};

/* An interval that is over. */
struct nr_ssc_interval {
	nr_u32 mean; /* E_T, 1/256 us above base - NR_SSC_RANGE */
	nr_u32 mad;  /* var_base / n, 1/256 us */
	nr_s32 skew; /* skew_base */
	nr_u32 n;    /* samples in skew and mad */
	nr_u32 delivered;
	nr_u32 lost;
};

/* Sums over a history, weighted except means and packets. */
struct nr_ssc_sums {
	nr_u64 n;
	nr_u64 below; /* of skew_base where above 0 */
	nr_u64 above; /* less skew_base where below 0 */
	nr_u64 var;
	nr_u64 mean;
	nr_u64 means; /* intervals in it */
	nr_u64 delivered;
	nr_u64 lost;
};

/* A path's history. */
struct nr_ssc {
	nr_u64 number;	  /* of the open interval */
	nr_u64 sum;	  /* of its delays, us */
	nr_u64 var;	  /* var_base, 1/256 us */
	nr_u64 last;	  /* number of the newest interval in the history */
	nr_u64 crossings; /* bit i: the interval i before the last crossed */
	nr_u64 slot;	  /* of spacing_us, in which a delay has counted */
	nr_u32 samples;	  /* delays in the open interval */
	nr_u32 strays;	  /* delays out of range */
	nr_u32 limited;	  /* application-limited samples */
	nr_s32 skew;	  /* skew_base */
	nr_u32 delivered;
	nr_u32 lost;
	nr_s32 base;		 /* the path's first delay */
	nr_u32 mean;		 /* of closed intervals: reference of skew_base */
	nr_u32 before;		 /* E_T of the newest interval: reference of var_base */
	nr_u32 closed;		 /* intervals in the history; index of the next one */
	nr_u32 side;		 /* of the last significant E_T: 1 below, 2 above, 0 none yet */
	nr_u32 congested;	 /* PB */
	struct nr_ssc_sums sums; /* scratch of nr_ssc_close() */
	struct nr_ssc_summary summary;
	struct nr_ssc_interval ring[NR_SSC_INTERVALS];
};

/* Empties the history; the ring has `closed` entries. */
NR_INLINE void nr_ssc_forget(struct nr_ssc *h)
{
	h->crossings = 0;
	h->closed = h->side = h->congested = 0;
}

NR_INLINE void nr_ssc_begin(struct nr_ssc *h, nr_u64 number)
{
	h->number = number;
	h->sum = h->var = 0;
	h->samples = h->strays = h->limited = h->delivered = h->lost = 0;
	h->skew = 0;
}

NR_INLINE void nr_ssc_reset(void *state)
{
	struct nr_ssc *h = state;

	nr_ssc_forget(h);
	nr_ssc_begin(h, 0);
}

/* Interval i of the history, 1 the newest. */
NR_INLINE struct nr_ssc_interval *nr_ssc_last(struct nr_ssc *h, nr_u32 i)
{
	return &h->ring[(h->closed - i) % NR_SSC_INTERVALS];
}

/* part / whole, Q16; part <= whole. */
NR_INLINE nr_u32 nr_ssc_ratio(nr_u64 part, nr_u64 whole)
{
	return whole ? (nr_u32)((part << 16) / whole) : 0;
}

/* Section 4.1: the weight of interval i, 1 the newest; equal weights if F >= M. */
NR_INLINE nr_u32 nr_ssc_weight(const struct nr_ssc_params *p, nr_u32 i)
{
	if (i > p->m)
		return 0;
	if (p->f >= p->m)
		return 1;
	return i <= p->f ? p->m - p->f + 1 : p->m - i + 1;
}

/*
 * Adds interval i, 1 the newest, to the sums; 0 if there is none. A separate function for BPF's
 * verifier, one step of a loop.
 */
NR_NOINLINE int nr_ssc_add(const struct nr_ssc_params *p, struct nr_ssc *h, nr_u32 i)
{
	const struct nr_ssc_interval *one;
	struct nr_ssc_sums *s;
	nr_u64 n;

	if (!p || !h || i > h->closed)
		return 0;
	one = nr_ssc_last(h, i);
	s = &h->sums;
	n = (nr_u64)nr_ssc_weight(p, i) * one->n;
	s->n += n;
	s->var += n * one->mad;
	if (one->skew > 0)
		s->below += (nr_u64)nr_ssc_weight(p, i) * (nr_u32)one->skew;
	else
		s->above += (nr_u64)nr_ssc_weight(p, i) * (nr_u32)-one->skew;
	if (i <= p->m) {
		s->mean += one->mean;
		s->means++;
	}
	if (i <= p->n) {
		s->delivered += one->delivered;
		s->lost += one->lost;
	}
	return 1;
}

NR_INLINE void nr_ssc_sum(const struct nr_ssc_params *p, struct nr_ssc *h)
{
	h->sums = (struct nr_ssc_sums){0};
	for (nr_u32 i = 1; i <= NR_SSC_INTERVALS; i++)
		if (!nr_ssc_add(p, h, i))
			break;
}

NR_INLINE int nr_ssc_is_congested(const struct nr_ssc_params *p, const struct nr_ssc_summary *s,
				  nr_u32 before)
{
	return s->skew < p->c_s || (before && s->skew < p->c_h) || s->loss > p->p_l;
}

/* Does the newest interval's E_T cross the mean? */
NR_INLINE nr_u32 nr_ssc_crossed(const struct nr_ssc_params *p, struct nr_ssc *h)
{
	nr_u64 band = (nr_u64)p->p_v * h->summary.var >> 16;
	nr_u64 e = nr_ssc_last(h, 1)->mean, mean = h->mean;
	nr_u32 side = e + band < mean ? 1 : e > mean + band ? 2 : 0;
	nr_u32 crossed = side && h->side && side != h->side;

	if (side)
		h->side = side;
	return crossed;
}

/*
 * Closes the open interval: adds it to the history and updates the estimates. Returns 0 if it is
 * skipped.
 */
NR_NOINLINE int nr_ssc_close(const struct nr_ssc_params *p, struct nr_ssc *h)
{
	struct nr_ssc_interval *one;
	struct nr_ssc_sums *sums;
	nr_u32 crossed = 0, known;

	if (!p || !h)
		return 0;
	if (!h->samples) {
		if (h->strays)
			nr_ssc_forget(h);
		return 0;
	}
	if (h->limited * 2 > h->samples)
		return 0;
	if (h->closed && h->number - h->last > p->n)
		nr_ssc_forget(h);
	known = !!h->closed;
	one = &h->ring[h->closed % NR_SSC_INTERVALS];
	one->mean = (nr_u32)((h->sum << NR_SSC_FRACTION) / h->samples);
	one->mad = known ? (nr_u32)(h->var / h->samples) : 0;
	one->skew = known ? h->skew : 0;
	one->n = known ? h->samples : 0;
	one->delivered = h->delivered;
	one->lost = h->lost;
	h->closed++;
	h->last = h->number;
	h->before = one->mean;
	nr_ssc_sum(p, h);
	sums = &h->sums;
	h->mean = (nr_u32)(sums->mean / sums->means);
	h->summary.skew = sums->below >= sums->above
			      ? (nr_s32)nr_ssc_ratio(sums->below - sums->above, sums->n)
			      : -(nr_s32)nr_ssc_ratio(sums->above - sums->below, sums->n);
	h->summary.loss = nr_ssc_ratio(sums->lost, sums->delivered + sums->lost);
	h->congested = nr_ssc_is_congested(p, &h->summary, h->congested);
	if (p->mask_noise && !h->congested) {
		sums->var -= (nr_u64)nr_ssc_weight(p, 1) * one->n * one->mad;
		one->mad = 0;
	}
	h->summary.var = sums->n ? (nr_u32)(sums->var / sums->n) : 0;
	if (h->congested || !p->mask_noise)
		crossed = nr_ssc_crossed(p, h);
	h->crossings = h->crossings << 1 | crossed;
	h->summary.freq = nr_ssc_ratio((nr_u64)NR_ONES64(h->crossings << (64 - p->n)), p->n);
	h->summary.congested = h->congested;
	h->summary.trusted = h->closed >= p->trusted;
	if (p->clock_skew) {
		h->mean = h->before;
		h->summary.freq = 0;
	}
	return 1;
}

/*
 * Takes a sample. Returns the stamp of the interval that it closed, described by h->summary, or 0.
 */
NR_INLINE nr_u32 nr_ssc_sample(const void *own, void *state, const struct nr_sample *s)
{
	const struct nr_ssc_params *p = own;
	struct nr_ssc *h = state;
	nr_u64 number = nr_interval(h->number, p->t_us, s->now_us), delay, slot;
	nr_u32 stamp = 0, above;

	if (number != h->number) {
		if (nr_ssc_close(p, h))
			stamp = (nr_u32)h->number + 1;
		nr_ssc_begin(h, number);
	}
	if (s->delivered < NR_SSC_PACKETS && h->delivered < NR_SSC_PACKETS)
		h->delivered += s->delivered;
	if (s->lost < NR_SSC_PACKETS && h->lost < NR_SSC_PACKETS)
		h->lost += s->lost;
	if (!s->sampled || h->samples >= NR_SSC_SAMPLES)
		return stamp;
	if (p->spacing_us) {
		slot = s->now_us / p->spacing_us;
		if (h->samples && slot == h->slot)
			return stamp;
		h->slot = slot;
	}
	if (!h->closed && !h->samples)
		h->base = s->delay_us;
	above = (nr_u32)s->delay_us - (nr_u32)h->base + NR_SSC_RANGE;
	if (above >= 2 * NR_SSC_RANGE) {
		h->strays++;
		return stamp;
	}
	delay = (nr_u64)above << NR_SSC_FRACTION;
	h->samples++;
	h->limited += s->limited;
	h->sum += above;
	h->skew += (delay < h->mean) - (delay > h->mean);
	h->var += delay > h->before ? delay - h->before : h->before - delay;
	return stamp;
}

/* Is member j of d->of, in the group of i and not above it, nearer than those before? */
NR_NOINLINE int nr_ssc_nearer(struct nr_scratch *d, nr_u32 i, nr_u32 j)
{
	nr_u32 away;

	if (!d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	away = d->value[i] - d->value[j];
	/* Equal values in the order of their numbers, so that the chain ends. */
	if (!(d->of >> j & 1) || d->place[j] != d->place[i] || d->value[j] > d->value[i] ||
	    (!away && j >= i) || away >= d->nearest)
		return 0;
	d->nearest = away;
	d->next[i] = j;
	return 1;
}

/*
 * Divides groups of the members in d->of where the values of neighbours differ by `limit`, or by
 * `limit` of the higher one: a member stays with the nearest of its group that is not above it,
 * unless that is too far. place[i] is the number of one member of i's group, the same for all.
 */
NR_NOINLINE int nr_ssc_divide(struct nr_scratch *d, nr_u32 limit, nr_u32 relative)
{
	if (!d)
		return 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		d->nearest = ~0ull;
		d->next[i] = i;
		for (nr_u32 j = 0; j < NR_DETECT_MAX; j++)
			nr_ssc_nearer(d, i, j);
		if (d->nearest && d->nearest << 16 >= (relative ? (nr_u64)limit * d->value[i]
								: (nr_u64)limit << 16))
			d->next[i] = i;
	}
	/* Each step doubles the chain followed; members whose chains end at one are a group. */
	for (nr_u32 way = 1; way < NR_DETECT_MAX; way *= 2)
		for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
			d->next[i] = d->next[d->next[i] % NR_DETECT_MAX];
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->place[i] = (nr_u8)d->next[i];
	return 1;
}

/* Is member j, which loses more than p_l (losses are in d->value), in the group of i? */
NR_NOINLINE nr_u32 nr_ssc_loses(const struct nr_scratch *d, nr_u32 p_l, nr_u32 i, nr_u32 j)
{
	if (!d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	return d->of >> j & 1 && d->place[j] == d->place[i] && d->value[j] > p_l;
}

/* Sets d->next of each member to 1 if one of its group loses more than p_l. */
NR_NOINLINE int nr_ssc_lossy(struct nr_scratch *d, nr_u32 p_l)
{
	if (!d)
		return 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		d->next[i] = 0;
		for (nr_u32 j = 0; j < NR_DETECT_MAX; j++)
			d->next[i] |= nr_ssc_loses(d, p_l, i, j) & 1;
	}
	return 1;
}

/*
 * Groups the congested members of d->present; other members are uncongested, or undecided if not
 * present or not trusted.
 */
NR_INLINE void nr_ssc_group(const void *own, const void *summaries, void *pairs,
			    struct nr_scratch *d)
{
	const struct nr_ssc_params *p = own;
	const struct nr_ssc_summary *s = summaries;

	d->of = 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		if (d->present >> i & 1 && s[i].trusted && s[i].congested)
			d->of |= 1ull << i;
		d->place[i] = 0;
		d->value[i] = s[i].freq;
	}
	nr_ssc_divide(d, p->p_f, 0);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->value[i] = s[i].var;
	nr_ssc_divide(d, p->p_mad, 1);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->value[i] = s[i].loss;
	nr_ssc_lossy(d, p->p_l);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->value[i] = p->loss_for_skew && d->next[i] ? 0 : (nr_u32)(s[i].skew + NR_Q16);
	nr_ssc_divide(d, p->p_s, 0);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->value[i] = s[i].loss;
	nr_ssc_lossy(d, p->p_l);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->value[i] *= d->next[i];
	nr_ssc_divide(d, p->p_d, 1);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		if (!(d->of >> i & 1))
			d->place[i] = d->present >> i & 1 && s[i].trusted ? NR_CLEAR : NR_UNDECIDED;
}

NR_INLINE struct nr_pace nr_ssc_pace(const void *own, const struct nr_decision_params *decision)
{
	const struct nr_ssc_params *p = own;

	return (struct nr_pace){
	    .t_us = p->t_us,
	    .settle_us = p->t_us,
	    .observations = decision->observations,
	    .together = decision->together,
	    .every = decision->every,
	    .hold_us = p->hold_us,
	};
}

NR_INLINE nr_u64 nr_ssc_warm_up(const void *own)
{
	const struct nr_ssc_params *p = own;

	return (nr_u64)p->trusted * p->t_us;
}

static const struct nr_preset nr_ssc_preset[] __attribute__((unused)) = {
    {"rfc8382", ""},
    /* Table I: an earlier draft of the same, without weighting and masking. */
    {"mptcp-sbd", "m=50 f=50 c_s=-0.01 p_s=0.1 mask_noise=off loss_for_skew=on trusted=50"},
    {0, 0},
};

NR_DETECTOR(ssc) = {
    .name = "ssc",
    .code = "ssc",
    .about = "groups paths whose delays have similar skewness, variability and frequency",
    .source = "RFC 8382",
    NR_TAKES(ssc),
    .preset = nr_ssc_preset,
    .measures = NR_BY_DELAY,
    NR_KEEPS(ssc),
    .reset = nr_ssc_reset,
    .sample = nr_ssc_sample,
    .group = nr_ssc_group,
    .pace = nr_ssc_pace,
    .warm_up_us = nr_ssc_warm_up,
};

#endif
