/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DCW, delay correlation with wavelet denoising: two paths share a bottleneck if their delays,
 * freed of noise, rise and fall together.
 *
 * Sources:
 *   [paper]  Kim, Kim, Shin, Lam, Powers, "A wavelet-based approach to detect shared congestion",
 *            SIGCOMM 2004; IEEE/ACM ToN 16(4), 2008. Only the abstracts could be had.
 *   [code]   By T. Kim, as M. S. Kim gave it to Emulab in 2007: emulab-stable, commit 03f79011e,
 *            pelab/bw-bottleneck/wavelet/withLibpcap/MinSikKim/dc.cc and dc.hh.
 *   [Emulab] Its programs around that code, in the same folder: udpClientDir/udpClient.cc,
 *            processDelay.py, sharedBottle.pl.
 *
 *   delays:     means of 100 ms (one probe [Emulab]), of the last 100 s [code]; a missing one is
 *               interpolated [Emulab]
 *   transform:  Daubechies' wavelet of 12 coefficients, delays mirrored at both ends, to level
 *               min(4, floor(log2(n / ln n))) of n delays [code]
 *   threshold:  of a level, t median(|detail|) / 0.6745 (minimax), where
 *               t = 0.3936 + 0.1829 log2(n + number of details); details up to it become 0, the
 *               others move towards 0 by it [code]
 *   two paths share:       the correlation of the restored delays, at lag 0, is at least 0.512
 *                          [code]
 *   more than two paths:   connected components of such pairs [Emulab]
 *
 * Our reading: the paper decides once, after a test with probes. Here delays are those of data. The
 * probes of two paths are sent at once; the first packets of 100 ms are not, and find far fewer
 * shared bottlenecks with short queues (RED) than means do. The window first grows to 100 s and
 * then slides by 1 s. Hayes et al. (IEEE/ACM ToN 28(5), 2020) ran DCW on line, too; their text
 * could not be had. Until a missing delay can be interpolated, the one before stands for it; after
 * 10 s without any a path starts over, as it does if its delay moves by NR_DCW_RANGE (a clock was
 * set). Two paths are compared over the newest delays that both have. A constant delay correlates
 * with none [code]. No path is called uncongested.
 *
 * Not for BPF: a decision takes 10^5 steps and 6 kB of memory for each path, and as many steps for
 * each pair with different numbers of delays.
 *
 * Units: delays in 64 us, once centred in 4 us; coefficients of the wavelet in 2^-30.
 * Valid: delays within 1 s of the path's first.
 */
#ifndef NARROWS_DETECT_DCW_H
#define NARROWS_DETECT_DCW_H

#include "../detector.h"
#include "../nr_fx.h"

#define NR_DCW_PARAMS(P)                                                                           \
	P(window, window, COUNT, 1000, 25, 1024, "newest delays compared, 10 a second",            \
	  "the authors' code: tests of 100 s")                                                     \
	P(least, least, COUNT, 25, 25, 1024, "delays from which on there is an answer",            \
	  "Emulab's processDelay.py")                                                              \
	P(threshold, threshold, RATIO, 0.512, 0, 1, "correlation from which two paths share",      \
	  "the authors' code")
NR_PARAMS(dcw, NR_DCW_PARAMS);

#ifndef __BPF__

#define NR_DCW_SLOT_US 100000u
#define NR_DCW_SLOTS 10u /* of an interval */
#define NR_DCW_T_US (NR_DCW_SLOTS * NR_DCW_SLOT_US)
#define NR_DCW_RANGE (1u << 20) /* us around the first delay */
#define NR_DCW_UNIT_BITS 6	/* of a us, dropped in a slot */
#define NR_DCW_NONE 0xffffu	/* an empty slot */
#define NR_DCW_RING 1024u	/* slots that are kept of a path; a power of two */
#define NR_DCW_GAP 100u		/* empty slots after which a path starts over */
#define NR_DCW_CENTRED 16	/* of a unit of a centred delay */
#define NR_DCW_TAPS 12u
#define NR_DCW_LEVELS 4u
#define NR_DCW_HALF 520u     /* the most coefficients of a level: (1024 + 11) / 2 */
#define NR_DCW_VALUE_BITS 25 /* of a coefficient: 2^19, times 2.2 a level (sum of |taps|) */

/* Daubechies, "Ten lectures on wavelets", 1992, Table 6.1, N = 6. 2^-30. */
static const nr_s32 nr_dcw_tap[NR_DCW_TAPS] __attribute__((unused)) = {
    119765961, 531098358, 806523892, 338497488, -242949865, -139336113,
    104691552, 29552452,  -33910957, 594684,	5129541,    -1156743,
};

/* What a path publishes for an interval. */
struct nr_dcw_summary {
	nr_s32 base; /* us: zero of the slots, less NR_DCW_RANGE */
	nr_u16 slot[NR_DCW_SLOTS];
};

/* A path's history. */
struct nr_dcw {
	nr_u64 number; /* of the open interval */
	nr_u32 based;  /* 1: base is set */
	nr_u32 some;   /* 1: there is a delay in the open interval */
	nr_s32 base;   /* us */
	nr_u32 reserved;
	nr_u64 sum[NR_DCW_SLOTS];   /* of delays above base - NR_DCW_RANGE, us */
	nr_u32 count[NR_DCW_SLOTS]; /* delays in it */
	struct nr_dcw_summary summary;
};

/* What is known of a path. */
struct nr_dcw_member {
	nr_s32 restored[NR_DCW_RING]; /* without noise, the oldest first */
	nr_u16 ring[NR_DCW_RING];
	nr_u32 next;  /* slot of the ring that is written next */
	nr_u32 count; /* delays in the ring; 0: none yet */
	nr_u32 gap;   /* of these, the newest that only repeat `last` */
	nr_u32 last;  /* the newest that was measured */
	nr_u32 n;     /* in `restored`; 0: too few */
	nr_s32 base;  /* of the ring */
	nr_u32 stamp; /* of the newest slots */
	nr_u32 since; /* stamp of the interval before it joined */
};

/* What is kept of a connection. Written by the path that is at a decision. */
struct nr_dcw_pairs {
	/* Scratch: two approximations in turn, and the details of all levels. */
	nr_s32 rough[2][NR_DCW_HALF];
	nr_s32 detail[NR_DCW_LEVELS][NR_DCW_HALF];
	nr_s32 fewer[NR_DCW_RING]; /* of a path with more delays than the other of a pair */
	struct nr_dcw_member member[NR_DETECT_MAX];
};

/* A path's part. */

NR_INLINE void nr_dcw_clear(struct nr_dcw *h)
{
	h->some = 0;
	for (nr_u32 n = 0; n < NR_DCW_SLOTS; n++) {
		h->sum[n] = 0;
		h->count[n] = 0;
	}
}

NR_INLINE void nr_dcw_reset(void *state)
{
	struct nr_dcw *h = state;

	h->number = 0;
	h->based = 0;
	nr_dcw_clear(h);
}

/* The interval is over: the means of its slots. */
NR_INLINE void nr_dcw_close(struct nr_dcw *h)
{
	h->summary.base = h->base;
	for (nr_u32 n = 0; n < NR_DCW_SLOTS; n++)
		h->summary.slot[n] = h->count[n]
					 ? (nr_u16)(h->sum[n] / h->count[n] >> NR_DCW_UNIT_BITS)
					 : NR_DCW_NONE;
}

/*
 * Takes a sample. Returns the stamp of the interval that it closed, described by h->summary, or 0.
 */
NR_INLINE nr_u32 nr_dcw_sample(const void *own, void *state, const struct nr_sample *s)
{
	struct nr_dcw *h = state;
	nr_u64 number = nr_interval(h->number, NR_DCW_T_US, s->now_us);
	nr_u64 start = number * NR_DCW_T_US;
	nr_u32 stamp = 0, above, slot;

	if (number != h->number) {
		if (h->some) {
			nr_dcw_close(h);
			stamp = (nr_u32)h->number + 1;
		}
		nr_dcw_clear(h);
		h->number = number;
	}
	if (!s->sampled)
		return stamp;
	above = (nr_u32)s->delay_us - (nr_u32)h->base + NR_DCW_RANGE;
	if (!h->based || above >= 2 * NR_DCW_RANGE) {
		nr_dcw_clear(h);
		h->based = 1;
		h->base = s->delay_us;
		above = NR_DCW_RANGE;
	}
	/* A clock slightly behind: the first slot. */
	slot = s->now_us > start ? (nr_u32)(s->now_us - start) / NR_DCW_SLOT_US : 0;
	if (slot < NR_DCW_SLOTS) {
		h->sum[slot] += above;
		h->count[slot]++;
	}
	h->some = 1;
	return stamp;
}

/* The connection's part. */

/* Adds a slot to the ring of a path. */
NR_NOINLINE void nr_dcw_add(struct nr_dcw_member *m, nr_u32 value)
{
	nr_s32 rise = (nr_s32)value - (nr_s32)m->last;

	if (value == NR_DCW_NONE) {
		if (!m->count || m->gap == NR_DCW_GAP) {
			m->count = 0;
			return;
		}
		value = m->last;
		m->gap++;
	} else {
		for (nr_u32 n = 1; m->count && n <= m->gap; n++)
			m->ring[(m->next - 1 - m->gap + n) % NR_DCW_RING] =
			    (nr_u16)((nr_s32)m->last + rise * (nr_s32)n / (nr_s32)(m->gap + 1));
		m->last = value;
		m->gap = 0;
	}
	m->ring[m->next] = (nr_u16)value;
	m->next = (m->next + 1) % NR_DCW_RING;
	if (m->count < NR_DCW_RING)
		m->count++;
}

/* Takes the new slots of member i. */
NR_NOINLINE void nr_dcw_take(struct nr_dcw_pairs *g, const struct nr_dcw_summary *one,
			     const struct nr_scratch *d, nr_u32 i)
{
	struct nr_dcw_member *m = &g->member[i];
	nr_u32 present = d->present >> i & 1;
	nr_u32 missed = NR_DCW_SLOTS * (d->stamp - m->stamp - 1);

	if (m->since != d->since[i] || (present && m->base != one->base) ||
	    d->stamp - m->stamp > NR_DCW_GAP / NR_DCW_SLOTS)
		m->count = 0;
	for (nr_u32 n = 0; m->count && n < missed; n++)
		nr_dcw_add(m, NR_DCW_NONE);
	for (nr_u32 n = 0; n < NR_DCW_SLOTS; n++)
		nr_dcw_add(m, present ? one->slot[n] : NR_DCW_NONE);
	if (present)
		m->base = one->base;
	m->since = d->since[i];
	m->stamp = d->stamp;
}

/* Element k of x[0..n], mirrored at both ends. */
NR_INLINE nr_s64 nr_dcw_mirrored(const nr_s32 *x, nr_s32 n, nr_s32 k)
{
	return x[k < 0 ? -1 - k : k < n ? k : 2 * n - 1 - k];
}

NR_INLINE nr_s32 nr_dcw_round(nr_s64 sum)
{
	return (nr_s32)((sum + (1 << 29)) >> 30);
}

/* Coefficients of a level that is made from n values. */
NR_INLINE nr_u32 nr_dcw_half(nr_u32 n)
{
	return (n + NR_DCW_TAPS - 1) / 2;
}

/* One level of the transform of x[0..n]. */
NR_NOINLINE void nr_dcw_split(const nr_s32 *x, nr_u32 n, nr_s32 *rough, nr_s32 *detail)
{
	for (nr_u32 i = 0; i < nr_dcw_half(n); i++) {
		nr_s64 low = 0, high = 0;

		for (nr_u32 j = 0; j < NR_DCW_TAPS; j++) {
			nr_s64 of = nr_dcw_mirrored(x, (nr_s32)n, (nr_s32)(2 * i + 1 - j));

			low += nr_dcw_tap[NR_DCW_TAPS - 1 - j] * of;
			high += (j % 2 ? 1 : -1) * nr_dcw_tap[j] * of;
		}
		rough[i] = nr_dcw_round(low);
		detail[i] = nr_dcw_round(high);
	}
}

/* The inverse, to x[0..n]. */
NR_NOINLINE void nr_dcw_join(const nr_s32 *rough, const nr_s32 *detail, nr_s32 *x, nr_u32 n)
{
	for (nr_u32 i = 0; i < n; i++) {
		nr_s64 sum = 0;

		/* Every other tap meets a coefficient. */
		for (nr_u32 j = i % 2; j < NR_DCW_TAPS; j += 2) {
			nr_u32 from = (i + NR_DCW_TAPS - 2 - j) / 2;
			nr_s64 high = (j % 2 ? -1 : 1) * nr_dcw_tap[NR_DCW_TAPS - 1 - j];

			if (from < nr_dcw_half(n))
				sum += (nr_s64)nr_dcw_tap[j] * rough[from] + high * detail[from];
		}
		x[i] = nr_dcw_round(sum);
	}
}

NR_INLINE nr_u32 nr_dcw_size(nr_s32 x)
{
	return (nr_u32)(x < 0 ? -x : x);
}

/* The k-th smallest of |x[0..n]|, the smallest is the first: bit by bit. */
NR_NOINLINE nr_u32 nr_dcw_smallest(const nr_s32 *x, nr_u32 n, nr_u32 k)
{
	nr_u32 value = 0;

	for (nr_u32 bit = 1u << NR_DCW_VALUE_BITS; bit; bit /= 2) {
		nr_u32 below = 0;

		for (nr_u32 i = 0; i < n; i++)
			below += nr_dcw_size(x[i]) < value + bit;
		if (below < k)
			value += bit;
	}
	return value;
}

/* log2(x), Q16; x is not 0. */
NR_INLINE nr_u32 nr_dcw_log2(nr_u32 x)
{
	nr_u32 whole = 63 - (nr_u32)NR_CLZ64(x), log = whole;
	nr_u64 m = (nr_u64)x << (31 - whole);

	for (nr_u32 n = 0; n < 16; n++) {
		m = m * m >> 31;
		log = 2 * log + (nr_u32)(m >> 32);
		m >>= m >> 32;
	}
	return log;
}

/* The levels of n delays: log2(n / ln n) >= 2 from n = 9 on, >= 3 from 27, >= 4 from 68. */
NR_INLINE nr_u32 nr_dcw_levels(nr_u32 n)
{
	return n >= 68 ? 4 : n >= 27 ? 3 : 2;
}

/* Details of a level, freed of noise. `t` in Q16. */
NR_NOINLINE void nr_dcw_shrink(nr_s32 *detail, nr_u32 n, nr_u32 t)
{
	nr_u64 twice =
	    (nr_u64)nr_dcw_smallest(detail, n, (n + 1) / 2) + nr_dcw_smallest(detail, n, n / 2 + 1);
	/* t * twice / 2 / 0.6745 */
	nr_s32 limit = (nr_s32)((twice * t >> 16) * 5000 / 6745);

	for (nr_u32 i = 0; i < n; i++)
		detail[i] -= detail[i] > limit ? limit : detail[i] < -limit ? -limit : detail[i];
}

/* The newest n delays of a path, centred, without noise. */
NR_NOINLINE void nr_dcw_restore(struct nr_dcw_pairs *g, const struct nr_dcw_member *m, nr_u32 n,
				nr_s32 *x)
{
	nr_u32 levels = nr_dcw_levels(n), all = n, size[NR_DCW_LEVELS + 1], t;
	const nr_s32 *from = x;
	nr_u64 sum = 0;

	for (nr_u32 i = 0; i < n; i++)
		sum += m->ring[(m->next - n + i) % NR_DCW_RING];
	for (nr_u32 i = 0; i < n; i++)
		x[i] = ((nr_s32)m->ring[(m->next - n + i) % NR_DCW_RING] - (nr_s32)(sum / n)) *
		       NR_DCW_CENTRED;
	size[0] = n;
	for (nr_u32 level = 0; level < levels; level++) {
		nr_dcw_split(from, size[level], g->rough[level % 2], g->detail[level]);
		from = g->rough[level % 2];
		size[level + 1] = nr_dcw_half(size[level]);
		all += size[level + 1];
	}
	t = (nr_u32)((3936ull * NR_Q16 + 1829ull * nr_dcw_log2(all)) / 10000);
	for (nr_u32 level = levels; level-- > 0;) {
		nr_s32 *to = level ? g->rough[(level - 1) % 2] : x;

		nr_dcw_shrink(g->detail[level], size[level + 1], t);
		nr_dcw_join(g->rough[level % 2], g->detail[level], to, size[level]);
	}
}

/* Do n restored delays of two paths correlate? */
NR_NOINLINE int nr_dcw_correlate(const struct nr_dcw_params *p, const nr_s32 *one,
				 const nr_s32 *other, nr_u32 n)
{
	nr_s64 a = 0, b = 0, aa = 0, bb = 0, ab = 0;
	struct nr_fx left, right;

	for (nr_u32 i = 0; i < n; i++) {
		nr_s64 x = one[i], y = other[i];

		a += x;
		b += y;
		aa += x * x;
		bb += y * y;
		ab += x * y;
	}
	aa = aa * n - a * a;
	bb = bb * n - b * b;
	ab = ab * n - a * b;
	if (aa <= 0 || bb <= 0 || ab <= 0)
		return 0;
	/* ab^2 >= threshold^2 aa bb */
	left = nr_fx_mul(nr_fx((nr_u64)ab), nr_fx((nr_u64)ab));
	right = nr_fx_mul(nr_fx((nr_u64)aa), nr_fx((nr_u64)bb));
	right = nr_fx_mul(right, nr_fx((nr_u64)p->threshold * p->threshold));
	return !nr_fx_less(nr_fx_shift(left, 32), right);
}

/* Do members i and j share? Both have enough delays, and the newest are of one time. */
NR_NOINLINE int nr_dcw_match(const struct nr_dcw_params *p, struct nr_dcw_pairs *g, nr_u32 i,
			     nr_u32 j)
{
	const struct nr_dcw_member *more = &g->member[i], *less = &g->member[j];

	if (more->n < less->n) {
		more = &g->member[j];
		less = &g->member[i];
	}
	if (more->n == less->n)
		return nr_dcw_correlate(p, more->restored, less->restored, less->n);
	nr_dcw_restore(g, more, less->n, g->fewer);
	return nr_dcw_correlate(p, g->fewer, less->restored, less->n);
}

NR_INLINE nr_u32 nr_dcw_least(const struct nr_dcw_params *p)
{
	return p->least < p->window ? p->least : p->window;
}

/* Members with too few delays are undecided; one without a match is its own group. */
NR_INLINE void nr_dcw_group(const void *own, const void *summaries, void *pairs,
			    struct nr_scratch *d)
{
	const struct nr_dcw_summary *of = summaries;
	const struct nr_dcw_params *p = own;
	struct nr_dcw_pairs *g = pairs;

	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		struct nr_dcw_member *m = &g->member[i];

		nr_dcw_take(g, &of[i], d, i);
		d->near[i] = 0;
		m->n = 0;
		if (m->count < nr_dcw_least(p))
			continue;
		m->n = m->count < p->window ? m->count : p->window;
		nr_dcw_restore(g, m, m->n, m->restored);
	}
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		for (nr_u32 j = 0; j < i; j++)
			if (g->member[i].n && g->member[j].n && nr_dcw_match(p, g, i, j)) {
				d->near[i] |= 1ull << j;
				d->near[j] |= 1ull << i;
			}
	nr_components(d);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		if (!g->member[i].n)
			d->place[i] = NR_UNDECIDED;
}

/* The newest observation, of the whole window, is the decision. */
NR_INLINE struct nr_pace nr_dcw_pace(const void *own, const struct nr_decision_params *decision)
{
	return (struct nr_pace){NR_DCW_T_US, NR_DCW_T_US, 1, 1, 1, 0};
}

/* An interval is published at its end and decided on after the next one. */
NR_INLINE nr_u64 nr_dcw_warm_up(const void *own)
{
	return (nr_u64)nr_dcw_least(own) * NR_DCW_SLOT_US + 2 * NR_DCW_T_US;
}

NR_DETECTOR(dcw) = {
    .name = "dcw",
    .code = "dw",
    .about = "groups paths whose delays correlate over 100 s, without noise by wavelets",
    .source = "SIGCOMM 2004, its authors' code",
    NR_TAKES(dcw),
    .measures = NR_BY_DELAY,
    .native = 1,
    NR_KEEPS(dcw),
    .pairs = sizeof(struct nr_dcw_pairs),
    .reset = nr_dcw_reset,
    .sample = nr_dcw_sample,
    .group = nr_dcw_group,
    .pace = nr_dcw_pace,
    .warm_up_us = nr_dcw_warm_up,
};

#endif /* __BPF__ */

#endif
