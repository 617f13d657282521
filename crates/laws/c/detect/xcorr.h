/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delays of two paths at the same moment: packets that pass one FIFO queue close together wait
 * about equally long there; two queues, however alike, are full at different moments.
 *
 * Source: this project. Concordance is Lin's coefficient (Biometrics 45, 1989) without the
 * difference of the means; the effective number of observations of autocorrelated series is
 * Bartlett's (1935).
 *
 *   d       delay of the path, relative; its time is when it was measured, less half the path's
 *           smallest round trip where that is known
 *   bins    means of d over 20 ms; a gap of up to G is filled by a straight line,
 *           G = clamp(0.8 V g / D, 40 ms, 240 ms), V the variance of the means, D the sum of the
 *           squared differences of neighbours and g the sum of their distances in time
 *   pairs   (a, b): means over those of three bins in which both paths have one, b being l bins
 *           earlier, l = -5..5
 *   L(l)  = 2 cov(a, b) / (var a + var b) = 1 - var(a - b) / (var a + var b); L = max L(l)
 *   phi   = 1 - sum of squared differences of successive values / (2 var), for a and for b
 *   f     = max(phi_a, 0) max(phi_b, 0)
 *   n_eff = n (1 - f) / (1 + f)
 *   theta = tanh(5 / sqrt(n_eff + 1)), five standard deviations of L
 *
 * No answer if n < 6 or var a + var b < 0.04 ms^2. Else shared if L >= max(0.4, theta), else
 * separate if L < 0.5.
 *
 * Clocks that differ make both delays rise or fall along one straight line. So in the slow sums
 * what a line of at most 200 ppm explains of both is taken off var a + var b before it is compared
 * with 0.04 ms^2, and off the L that is compared with max(0.4, theta).
 *
 * Noise explains how they differ if r = (D(a - b) / 2) / ((N(a) + N(b)) / 3) < 1, D the mean square
 * of what a - b changes from a value to the next, N that of what d changes in 4 ms or somewhat
 * more. If it does, only the slow sums say separate, and only if L < 0.5 - theta. They are not
 * shared if r >= 3/4, nor any more if r >= 1. Smooth queues, n_eff < 0.3 n in the slow sums, are
 * shared only if r < 1/2, and not any more if r >= 3/4, over 64 values; for them the fast sums do
 * not say shared, nor anything of noise.
 *
 * Queues may be in step without being one: two sawteeth of one period that began together. N is
 * what bins can miss of one queue, and two queues differ by more. And one queue may be so short, or
 * so slow, that what bins miss of it is most of what they see.
 *
 * All sums are kept twice, multiplied by 3/4 (fast) and by 63/64 (slow) each interval of 240 ms
 * that brings the pair values; others change nothing. The fast ones answer if they can, else the
 * slow ones. It takes two intervals in a row to change shared to separate. Without either the last
 * answer holds, until a path leaves or is silent for 15 s, or queues that were shared prove to
 * differ by more than noise. What a - b changes is kept for each copy, at its best lag and at all
 * that were, in the fast one multiplied by 15/16. Groups are the components of shared pairs; what
 * is not known may be shared (nr_xcorr_group()).
 *
 * What a path's own sending does to its delay says nothing of a common queue, as the paths of a
 * connection start and pause together. So a path does not count: until its first loss, at most 3 s;
 * while it is limited by the application; after a silence much longer than its usual ones (a pause,
 * a closed window, a timeout); while its law drains the queue in ProbeRTT; and after each of these
 * until its queue has settled, but after limits only if they lasted as a pause does. Nor does an
 * acknowledgement that may have waited alone.
 *
 * Interpolating at every packet, bins of 50 ms and one decision a second would do as well; these
 * forms need no history of packets, no search, and no division by a count of packets in a pair. The
 * tests compare the answers with that form in floating point (tests/reference/xcorr.rs).
 *
 * A path publishes for an interval the bins of the one before, so that the next samples can close
 * a gap. The path that is at a decision adds them to the sums of the pairs, which belong to the
 * connection.
 *
 * Units: us; in bins 64 us; in pairs 6/8 of that (means of one, two or three bins without a
 * division), sums with 10 bits of fraction.
 * Valid: delays within 1 s of the path's first, otherwise its sums start over; in pairs within
 * 0.35 s of their mean, more counts as that; lags within 100 ms.
 */
#ifndef NARROWS_DETECT_XCORR_H
#define NARROWS_DETECT_XCORR_H

#include "../detector.h"
#include "../nr_fx.h"

#define NR_XCORR_BIN_US 20000u
#define NR_XCORR_BINS 12u /* of an interval */
#define NR_XCORR_T_US (NR_XCORR_BINS * NR_XCORR_BIN_US)
#define NR_XCORR_KEPT 32u /* bins kept of two intervals, a power of two for BPF's verifier */
#define NR_XCORR_RING 64u /* bins that a path keeps; a power of two */
#define NR_XCORR_RANGE (1u << 20)     /* us around the first delay */
#define NR_XCORR_UNIT_BITS 6	      /* of a us, dropped in a bin */
#define NR_XCORR_NOISE 63	      /* the bits of it in a base */
#define NR_XCORR_APART_US 4000u	      /* between delays that tell noise */
#define NR_XCORR_NOISE_MAX (1u << 16) /* us between successive delays; more counts as that */
#define NR_XCORR_NONE 0xffffu	      /* an empty bin */
#define NR_XCORR_SAMPLES (1u << 16)   /* of a bin; later ones are left out */
#define NR_XCORR_GAP_MIN 2u	      /* bins */
#define NR_XCORR_GAP_MAX 12u
#define NR_XCORR_THREE 3u /* bins in a pair, 60 ms */
#define NR_XCORR_LAGS 11u
#define NR_XCORR_LAG_MAX 5u
#define NR_XCORR_FRACTION 10 /* bits, in sums */
#define NR_XCORR_ONE (1u << NR_XCORR_FRACTION)
#define NR_XCORR_SPAN (1 << 12) /* values of a pair lie within this of their reference */
#define NR_XCORR_FAR (1 << 14)	/* added to differences, so that 0 is none */
/* Memories: an interval's part of the sums, 2^-n. Steps need more than the fast one has. */
#define NR_XCORR_FAST 2u
#define NR_XCORR_FAST_STEPS 4u
#define NR_XCORR_SLOW 6u
/*
 * Steps from which on they say whether noise explains them, in the slow sums and in the fast; and
 * from which on they say that it does.
 */
#define NR_XCORR_MANY 64u
#define NR_XCORR_MANY_FAST 16u
#define NR_XCORR_SOME 6u
#define NR_XCORR_STEPS_MAX 1024u /* more of an interval, in what noise explains, counts as that */
#define NR_XCORR_PART 2u	 /* intervals in a row that change an answer to separate */
#define NR_XCORR_NEW 64u	 /* intervals without a path until it is forgotten */
#define NR_XCORR_EARLY 42u	 /* intervals, 10 s, until paths that may share are linked */

/* Twice the least variance of both paths, squared units: 0.04 ms^2. */
#define NR_XCORR_FLAT 11u

/* How far a reference moves towards the mean, and from what distance on. */
#define NR_XCORR_STEP_FAR 1024
#define NR_XCORR_STEP 64

#define NR_XCORR_PAIRS (NR_DETECT_MAX * (NR_DETECT_MAX - 1) / 2)

#define NR_XCORR_PARAMS(P)                                                                         \
	P(start_us, start_s, SECONDS, 3, 0, 60,                                                    \
	  "time after which a path counts that has not lost a packet, s",                          \
	  "our choice: slow start takes less up to 1 Gbit/s and 100 ms")                           \
	P(settle_us, settle_ms, MS, 500, 0, 10000,                                                 \
	  "time after its start or a pause until a path counts, ms, and two round trips",          \
	  "our choice: a loss is repaired and the queue is full again")                            \
	P(pause_us, pause_ms, MS, 200, 10, 10000,                                                  \
	  "silence, at least eight usual ones, that is a pause, ms",                               \
	  "our choice: the smallest retransmission timeout of Linux")                              \
	P(samples, samples, COUNT, 6, 2, 64, "pairs from which on there is an answer",             \
	  "our choice, from simulations")                                                          \
	P(apart, apart, RATIO, 0.5, 0, 1, "concordance below which two paths are separate",        \
	  "our choice, from simulations")
NR_PARAMS(xcorr, NR_XCORR_PARAMS);

/* What a path publishes for an interval: the bins of the one before. */
struct nr_xcorr_summary {
	nr_s32 base; /* us: zero of the bins, less NR_XCORR_RANGE; in its low bits the noise */
	nr_u16 bin[NR_XCORR_BINS];
};

/* A path's history. */
struct nr_xcorr {
	nr_u64 number;	     /* of the open interval */
	nr_u64 bin;	     /* the open one */
	nr_u64 done;	     /* the newest that is closed and not empty */
	nr_u64 sum;	     /* delays in the open one, us above base - NR_XCORR_RANGE */
	nr_u64 delivered_us; /* time of the last event with packets delivered, not limited */
	nr_u64 begun_us;     /* time of the first one */
	nr_u64 counts_us;    /* from when on the path counts */
	/* Of closed bins with a neighbour within NR_XCORR_GAP_MAX, by halves each 32 intervals. */
	nr_u64 aa;	 /* squares */
	nr_u64 raa;	 /* squared differences of neighbours */
	nr_s32 a;	 /* values above the reference */
	nr_u32 n;	 /* their number */
	nr_u32 distance; /* sum of distances of neighbours, bins */
	nr_s32 from;	 /* reference */
	nr_u32 count;	 /* delays in the open bin */
	nr_u32 last;	 /* value of bin `done` */
	nr_u32 some;	 /* 1: there is a bin `done` */
	nr_u32 gap;	 /* G, bins */
	nr_s32 base;
	nr_u32 based;		    /* 1: base is set */
	nr_u32 rtt_us;		    /* smallest; 0: unknown */
	nr_u32 silence_us;	    /* usual time between events, mean */
	nr_u64 newest_us;	    /* time of the newest delay */
	nr_u64 noise;		    /* squared distances of successive delays, us^2 */
	nr_u32 steps;		    /* their number; both fade */
	nr_s32 newest;		    /* it */
	nr_u32 started;		    /* 1: the first slow start is over */
	nr_u32 delivered;	    /* 1: packets were delivered in the open interval */
	nr_u16 ring[NR_XCORR_RING]; /* bin b at b % NR_XCORR_RING */
	struct nr_xcorr_summary summary;
};

/* Sums of a - b at a lag. */
struct nr_xcorr_lag {
	nr_u64 dd;
	nr_s32 d;
	nr_u32 n;
};

/*
 * What a - b at the best lag changes from a value to the next: at the lag that is the best now, and
 * at all that were.
 */
struct nr_xcorr_steps {
	nr_u32 squares, all_squares; /* in what noise explains at the time */
	nr_u32 count, all;
};

struct nr_xcorr_sums {
	nr_u64 aa, bb;
	nr_u64 raa, rbb; /* squared differences of successive values */
	nr_s32 a, b;
	nr_u32 n;
	nr_u32 m; /* successive values */
	struct nr_xcorr_lag lag[NR_XCORR_LAGS];
	struct nr_xcorr_steps steps;
};

/*
 * Of the slow sums' values x = a + b, k intervals old: what tells the line that both may follow, as
 * delays do if clocks differ.
 */
struct nr_xcorr_line {
	nr_s64 kx; /* k x */
	nr_u64 kk;
	nr_u32 k;
	nr_u32 stamp; /* of the newest values */
};

struct nr_xcorr_pair {
	struct nr_xcorr_sums fast, slow;
	struct nr_xcorr_line line;
	nr_s32 a, b; /* references */
	nr_s32 last_a, last_b;
	struct nr_pair known;
	nr_u32 begin;  /* stamp of the interval since which both have been there */
	nr_u8 begun;   /* 1: references and last values are set */
	nr_u8 against; /* successive intervals that said separate, not shared */
	nr_u8 lag[2];  /* best one by the fast and by the slow sums */
};

/* What is known of a path: its bins of the last two intervals, the newer ones second. */
struct nr_xcorr_member {
	nr_u16 bin[NR_XCORR_KEPT];
	nr_u16 three[NR_XCORR_KEPT]; /* value of this bin and the next two, if all are there */
	nr_s32 base;
	nr_u32 since; /* stamp of the interval before it joined */
	nr_u32 stamp; /* of the newest bins; 0: none */
	/* Bins that are not empty, as bits: of the newer interval; with up to 5 after each. */
	nr_u32 newer, near;
	nr_u32 reserved;
	nr_u64 noise; /* of single delays, us^2 */
};

/*
 * Does noise explain how two differ? Bits, as it may explain it barely, or by one of the sums: not
 * separate; not shared; not shared any more.
 */
enum nr_xcorr_noise {
	NR_XCORR_EXPLAINS = 1,
	NR_XCORR_TOO_LITTLE = 2,
	NR_XCORR_REFUTES = 4,
};

/* What is kept of a connection. Written by the path that is at a decision. */
struct nr_xcorr_pairs {
	nr_u32 stamp; /* of the interval at hand */
	nr_u32 best_lag;
	nr_u64 fresh; /* members with new bins */
	nr_u64 anew;  /* members forgotten in this interval */
	nr_u64 moved; /* members with another base */
	nr_u64 known; /* members with bins since they joined */
	/*
	 * Scratch: of a pair n^2 var(a - b) at the best lag, and n; 1 - L = left / right, and with
	 * less for what clocks may add, left / level.
	 */
	nr_u64 best;
	struct nr_fx left, right, level;
	nr_u32 best_n;
	nr_u32 both;	      /* of the pair at hand: 1: at some lag both have a new bin */
	nr_u32 answered;      /* 1: it has its answer */
	nr_u32 n_eff, n_slow; /* n_slow: that of the slow sums */
	nr_u32 found;	      /* the answer of its newest interval */
	nr_u32 alike;	      /* then: L, Q15 */
	nr_u32 smooth;	      /* 1: its queues are */
	nr_u32 noise;	      /* does it explain how they differ? enum nr_xcorr_noise */
	nr_u32 line;	      /* 1: they may be a straight line */
	/* Scratch: members known to be separate from i's group, and those that may be of it. */
	nr_u64 apart[NR_DETECT_MAX];
	nr_u64 among[NR_DETECT_MAX];
	struct nr_xcorr_member member[NR_DETECT_MAX];
	struct nr_xcorr_pair pair[NR_XCORR_PAIRS];
};

/*
 * tanh(5 / sqrt(n + 1)) as 1 - theta, Q16. Fisher's z, atanh(L), has a standard deviation of about
 * 1 / sqrt(n + 1), so that shared is five of them from queues that have nothing in common: the best
 * of many lags and looks. docs/detectors-compared.md has how often answers were right.
 */
#define NR_XCORR_THETAS 256u
static const nr_u16 nr_xcorr_theta[NR_XCORR_THETAS] __attribute__((unused)) = {
    6,	   111,	  406,	 877,	1480,  2174,  2926,  3712,  4515,  5323,  6127,	 6922,	7704,
    8468,  9215,  9943,	 10651, 11339, 12007, 12656, 13286, 13897, 14490, 15065, 15624, 16167,
    16693, 17205, 17702, 18186, 18656, 19113, 19558, 19991, 20413, 20823, 21224, 21614, 21994,
    22365, 22728, 23081, 23426, 23764, 24093, 24415, 24730, 25038, 25339, 25634, 25922, 26205,
    26482, 26753, 27018, 27278, 27534, 27784, 28029, 28270, 28507, 28738, 28966, 29190, 29409,
    29625, 29837, 30045, 30250, 30451, 30649, 30844, 31035, 31224, 31409, 31591, 31771, 31948,
    32122, 32293, 32462, 32628, 32792, 32953, 33112, 33269, 33424, 33576, 33726, 33874, 34020,
    34164, 34307, 34447, 34585, 34722, 34857, 34990, 35121, 35251, 35379, 35505, 35630, 35753,
    35875, 35996, 36114, 36232, 36348, 36463, 36576, 36688, 36799, 36909, 37017, 37124, 37230,
    37335, 37438, 37541, 37642, 37742, 37841, 37940, 38037, 38133, 38228, 38322, 38415, 38507,
    38599, 38689, 38778, 38867, 38955, 39042, 39128, 39213, 39297, 39381, 39463, 39545, 39627,
    39707, 39787, 39866, 39944, 40022, 40098, 40175, 40250, 40325, 40399, 40473, 40545, 40618,
    40689, 40760, 40831, 40901, 40970, 41038, 41106, 41174, 41241, 41307, 41373, 41439, 41503,
    41568, 41631, 41695, 41757, 41820, 41882, 41943, 42004, 42064, 42124, 42183, 42242, 42301,
    42359, 42417, 42474, 42531, 42587, 42643, 42699, 42754, 42809, 42863, 42917, 42971, 43024,
    43077, 43130, 43182, 43234, 43285, 43336, 43387, 43437, 43487, 43537, 43586, 43635, 43684,
    43732, 43780, 43828, 43876, 43923, 43970, 44016, 44062, 44108, 44154, 44199, 44244, 44289,
    44334, 44378, 44422, 44465, 44509, 44552, 44595, 44637, 44680, 44722, 44764, 44805, 44846,
    44888, 44928, 44969, 45009, 45050, 45089, 45129, 45169, 45208, 45247, 45285, 45324, 45362,
    45400, 45438, 45476, 45513, 45551, 45588, 45625, 45661, 45698,
};
#define NR_XCORR_LEAST 39322u /* and shared at least 0.4: 1 - L, Q16 */

/* a - b, 0 if that is negative. */
NR_INLINE struct nr_fx nr_xcorr_less(struct nr_fx a, struct nr_fx b)
{
	if (!nr_fx_less(b, a))
		return nr_fx(0);
	return nr_fx_shift(nr_fx(nr_fx_align(a, a.e) - nr_fx_align(b, a.e)), a.e - 24);
}

/* sum(x^2) n - sum(x)^2; 0 if rounding made it negative. */
NR_INLINE nr_u64 nr_xcorr_spread(nr_u64 xx, nr_s32 x, nr_u32 n)
{
	nr_u64 all = xx * n, mean = (nr_u64)((nr_s64)x * x);

	return all > mean ? all - mean : 0;
}

/* Multiplied by 1 - 2^-shift, rounded to the nearest, so that rounding does not add up. */
NR_INLINE nr_u64 nr_xcorr_fade(nr_u64 x, nr_u32 shift)
{
	return x - ((x + (1u << (shift - 1))) >> shift);
}

NR_INLINE nr_s32 nr_xcorr_fade_signed(nr_s32 x, nr_u32 shift)
{
	return x - ((x + (1 << (shift - 1))) >> shift);
}

/* How far a reference with the sum x above it is to move; rounding leaves no more of old sums. */
NR_INLINE nr_s32 nr_xcorr_step(nr_s32 x, nr_u32 n)
{
	nr_u64 away = (nr_u64)(x < 0 ? -(nr_s64)x : x);
	nr_s32 step = 0;

	if (n < NR_XCORR_ONE)
		return 0;
	if (away > (nr_u64)n * NR_XCORR_STEP)
		step = NR_XCORR_STEP;
	if (away > (nr_u64)n * NR_XCORR_STEP_FAR)
		step = NR_XCORR_STEP_FAR;
	return x < 0 ? -step : step;
}

/* sum((x - step)^2), from sums of x; 0 if rounding made it negative. */
NR_INLINE nr_u64 nr_xcorr_moved(nr_u64 xx, nr_s32 x, nr_u32 n, nr_s32 step)
{
	nr_s64 moved = (nr_s64)xx + (nr_s64)step * step * n - 2 * (nr_s64)step * x;

	return moved > 0 ? (nr_u64)moved : 0;
}

NR_INLINE nr_s32 nr_xcorr_within(nr_s32 x)
{
	if (x > NR_XCORR_SPAN)
		return NR_XCORR_SPAN;
	return x < -NR_XCORR_SPAN ? -NR_XCORR_SPAN : x;
}

/* What x within the span adds to a sum of values, and to one of squares. */
NR_INLINE nr_s32 nr_xcorr_one(nr_s32 x)
{
	return x * (nr_s32)NR_XCORR_ONE;
}

NR_INLINE nr_u64 nr_xcorr_square(nr_s32 x)
{
	return (nr_u64)(nr_u32)(x * x) << NR_XCORR_FRACTION;
}

/* A path's part. */

NR_INLINE void nr_xcorr_reset(void *state)
{
	struct nr_xcorr *h = state;

	h->number = h->bin = h->done = h->sum = 0;
	h->delivered_us = h->begun_us = h->counts_us = 0;
	h->aa = h->raa = 0;
	h->a = h->from = 0;
	h->n = h->distance = h->count = h->some = h->based = 0;
	h->gap = NR_XCORR_GAP_MIN;
	h->rtt_us = h->silence_us = h->started = h->delivered = h->base = 0;
	h->newest_us = h->newest = h->noise = h->steps = 0;
}

/* The open bin becomes the newest closed one: bins between are filled, or empty. */
NR_NOINLINE int nr_xcorr_close_bin(struct nr_xcorr *h)
{
	nr_u32 value, away, slope = 0, empty = NR_XCORR_NONE;
	nr_s32 x, r;

	if (!h || !h->count)
		return 0;
	value = (nr_u32)(h->sum / h->count) >> NR_XCORR_UNIT_BITS;
	away = h->some && h->bin - h->done < NR_XCORR_RING ? (nr_u32)(h->bin - h->done)
							   : NR_XCORR_RING;
	if (h->some && away <= h->gap) {
		slope = value > h->last ? ((value - h->last) << 15) / away
					: 0 - ((h->last - value) << 15) / away;
		empty = 0;
	}
	for (nr_u32 n = 1; n < NR_XCORR_RING; n++) {
		NR_FORGET();
		if (n >= away)
			break;
		h->ring[(h->bin - away + n) % NR_XCORR_RING] =
		    (nr_u16)((((h->last << 15) + n * slope) >> 15) | empty);
	}
	h->ring[h->bin % NR_XCORR_RING] = (nr_u16)value;
	if (!h->n)
		h->from = (nr_s32)value;
	if (h->some && away <= NR_XCORR_GAP_MAX) {
		x = nr_xcorr_within((nr_s32)value - h->from);
		r = nr_xcorr_within((nr_s32)value - (nr_s32)h->last);
		h->n += NR_XCORR_ONE;
		h->a += nr_xcorr_one(x);
		h->aa += nr_xcorr_square(x);
		h->raa += nr_xcorr_square(r);
		h->distance += away << NR_XCORR_FRACTION;
	}
	h->last = value;
	h->done = h->bin;
	h->some = 1;
	h->count = 0;
	h->sum = 0;
	return 1;
}

/* G: the longest gap to fill. */
NR_INLINE void nr_xcorr_set_gap(struct nr_xcorr *h)
{
	nr_u64 spread = nr_xcorr_spread(h->aa, h->a, h->n), gap;
	struct nr_fx most, n = nr_fx(h->n);
	nr_s32 step = nr_xcorr_step(h->a, h->n);

	if (h->n > 3 * NR_XCORR_ONE && h->raa) {
		/* 0.8 = 4/5 */
		most = nr_fx_mul(nr_fx_shift(nr_fx(spread), 2), nr_fx(h->distance));
		most =
		    nr_fx_div(most, nr_fx_mul(nr_fx_mul(n, n), nr_fx_mul(nr_fx(h->raa), nr_fx(5))));
		gap = nr_fx_fixed(most, 0);
		h->gap = gap > NR_XCORR_GAP_MAX	  ? NR_XCORR_GAP_MAX
			 : gap < NR_XCORR_GAP_MIN ? NR_XCORR_GAP_MIN
						  : (nr_u32)gap;
	}
	h->aa = nr_xcorr_moved(h->aa, h->a, h->n, step);
	h->a -= step * (nr_s32)h->n;
	h->from += step;
	/* 7/8 each second is 31/32 each interval. */
	h->n = (nr_u32)nr_xcorr_fade(h->n, 5);
	h->a = nr_xcorr_fade_signed(h->a, 5);
	h->aa = nr_xcorr_fade(h->aa, 5);
	h->raa = nr_xcorr_fade(h->raa, 5);
	h->distance = (nr_u32)nr_xcorr_fade(h->distance, 5);
	h->noise = nr_xcorr_fade(h->noise, 5);
	h->steps = (nr_u32)nr_xcorr_fade(h->steps, 5);
}

/* A noise, us^2, in six bits: its power of two, and the next bit. */
NR_INLINE nr_u32 nr_xcorr_pack(nr_u64 noise)
{
	nr_u32 e;

	if (noise < 16)
		return 0;
	e = 63 - (nr_u32)NR_CLZ64(noise);
	return ((e - 4) << 1 | (noise >> (e - 1) & 1)) & NR_XCORR_NOISE;
}

NR_INLINE nr_u64 nr_xcorr_unpack(nr_u32 packed)
{
	return (nr_u64)(2 | (packed & 1)) << ((packed >> 1 & 31) + 3);
}

/*
 * The interval is over: publishes the bins of the one before. They may be empty: a path with
 * packets that does not count keeps its group. Returns 0 if the path was silent.
 */
NR_NOINLINE int nr_xcorr_close(struct nr_xcorr *h)
{
	nr_u64 first;

	if (!h || !h->delivered || !h->number)
		return 0;
	h->delivered = 0;
	first = (h->number - 1) * NR_XCORR_BINS;
	h->summary.base = h->base | (nr_s32)nr_xcorr_pack(h->steps ? h->noise / h->steps : 0);
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n++) {
		nr_u64 before = h->done - (first + n); /* huge if later */
		nr_u32 empty = 0 - (nr_u32)(!h->some | (before >= NR_XCORR_RING));

		h->summary.bin[n] =
		    (nr_u16)(h->ring[(first + n) % NR_XCORR_RING] | (empty & NR_XCORR_NONE));
	}
	nr_xcorr_set_gap(h);
	return 1;
}

/* The path does not count now, nor until its queue has settled. */
NR_INLINE void nr_xcorr_wait(const struct nr_xcorr_params *p, struct nr_xcorr *h, nr_u64 now_us)
{
	h->counts_us = now_us + p->settle_us + 2ull * h->rtt_us;
	h->count = 0;
	h->sum = 0;
}

/* Does the path count, or does its own sending explain its delay? */
NR_NOINLINE int nr_xcorr_counts(const struct nr_xcorr_params *p, struct nr_xcorr *h,
				const struct nr_sample *s)
{
	nr_u64 silence;

	if (!p || !h || !s)
		return 0;
	silence = s->now_us > h->delivered_us ? s->now_us - h->delivered_us : 0;
	/*
	 * What is lost before anything is delivered ends no slow start, as in a capture that begins
	 * within a loss.
	 */
	if (h->begun_us && s->lost)
		h->started = 1;
	if (!h->begun_us) {
		h->delivered_us = s->now_us;
		if (s->delivered || s->sampled)
			h->begun_us = s->now_us;
		silence = 0;
		nr_xcorr_wait(p, h, s->now_us);
	}
	if (s->resting || (!h->started && s->now_us < h->begun_us + p->start_us) ||
	    (silence >= p->pause_us && silence / 8 >= h->silence_us))
		nr_xcorr_wait(p, h, s->now_us);
	if (s->delivered || s->sampled)
		h->delivered = 1;
	/* What the application limits does not count, and is a pause if it lasts. */
	if (s->delivered && !s->limited) {
		if (silence > 1u << 24)
			silence = 1u << 24;
		h->silence_us += (nr_u32)silence / 16;
		h->silence_us -= h->silence_us / 16;
		h->delivered_us = s->now_us;
	}
	return s->now_us >= h->counts_us && !s->limited;
}

/*
 * Noise: the squared distance of a delay from the one before, 4 ms or more earlier and not long
 * ago. Packets of one burst pass a fast link in less, and tell each other nothing.
 */
NR_INLINE void nr_xcorr_add_noise(struct nr_xcorr *h, nr_u64 at_us, nr_s32 delay_us)
{
	nr_u64 away = delay_us > h->newest ? (nr_u32)delay_us - (nr_u32)h->newest
					   : (nr_u32)h->newest - (nr_u32)delay_us;

	if (h->based && at_us < h->newest_us + NR_XCORR_APART_US)
		return;
	if (away > NR_XCORR_NOISE_MAX)
		away = NR_XCORR_NOISE_MAX;
	if (h->based && at_us - h->newest_us <= NR_XCORR_T_US) {
		h->noise += away * away << NR_XCORR_FRACTION;
		h->steps += NR_XCORR_ONE;
	}
	h->newest_us = at_us;
	h->newest = delay_us;
}

/* A delay of a path that counts. */
NR_NOINLINE int nr_xcorr_delay(struct nr_xcorr *h, nr_u64 at_us, nr_s32 delay_us)
{
	nr_u64 bin = at_us / NR_XCORR_BIN_US;
	nr_u32 above;

	if (!h)
		return 0;
	nr_xcorr_add_noise(h, at_us, delay_us);
	above = (nr_u32)delay_us - (nr_u32)h->base + NR_XCORR_RANGE;
	if (!h->based || above >= 2 * NR_XCORR_RANGE) {
		h->based = 1;
		h->base = delay_us & ~NR_XCORR_NOISE;
		h->count = h->n = h->some = h->distance = 0;
		h->a = 0;
		h->sum = h->aa = h->raa = 0;
		above = (nr_u32)delay_us - (nr_u32)h->base + NR_XCORR_RANGE;
	}
	if (h->count && bin > h->bin)
		nr_xcorr_close_bin(h);
	if (!h->count) {
		/* A clock slightly behind: a closed bin stays. */
		if (h->some && bin <= h->done)
			return 0;
		h->bin = bin;
	}
	if (h->count < NR_XCORR_SAMPLES) {
		h->sum += above;
		h->count++;
	}
	return 1;
}

/*
 * Takes a sample. Returns the stamp of the interval that it closed, described by h->summary, or 0.
 */
NR_INLINE nr_u32 nr_xcorr_sample(const void *own, void *state, const struct nr_sample *s)
{
	const struct nr_xcorr_params *p = own;
	struct nr_xcorr *h = state;
	nr_u64 number = nr_interval(h->number, NR_XCORR_T_US, s->now_us);
	nr_u64 back;
	nr_u32 stamp = 0;

	if (number != h->number) {
		if (nr_xcorr_close(h))
			stamp = (nr_u32)h->number + 1;
		h->number = number;
	}
	if (!s->delivered && !s->lost && !s->sampled)
		return stamp;
	if (s->rtt_us && (!h->rtt_us || s->rtt_us < h->rtt_us))
		h->rtt_us = s->rtt_us;
	if (!nr_xcorr_counts(p, h, s) || !s->sampled || s->supposed)
		return stamp;
	/* At most an interval back, as its bins are published after the next one. */
	back = h->rtt_us / 2;
	if (back > NR_XCORR_T_US)
		back = NR_XCORR_T_US;
	nr_xcorr_delay(h, s->now_us > back ? s->now_us - back : 0, s->delay_us);
	return stamp;
}

/* The connection's part. */

NR_INLINE nr_u32 nr_xcorr_number(nr_u32 i, nr_u32 j)
{
	nr_u32 more = i > j ? i : j, less = i > j ? j : i;
	nr_u32 number = more * (more - 1) / 2 + less;

	/* BPF's verifier knows no bound after a division, but after a test. */
	return number < NR_XCORR_PAIRS ? number : 0;
}

/* A value: the sum of so many of three bins, by 6 / 8 of their number. */
NR_INLINE nr_s32 nr_xcorr_value(nr_u32 sum, nr_u32 count)
{
	/* 6 / count, 0 for none: a nibble each. */
	nr_u32 times = 0x2360u >> (4 * count) & 0xf;

	return (nr_s32)(sum * times >> 3);
}

/* Sets three[n]. */
NR_INLINE void nr_xcorr_set_three(struct nr_xcorr_member *m, nr_u32 n)
{
	nr_u32 x = m->bin[n % NR_XCORR_KEPT], y = m->bin[(n + 1) % NR_XCORR_KEPT];
	nr_u32 z = m->bin[(n + 2) % NR_XCORR_KEPT];
	nr_u32 none = (x == NR_XCORR_NONE) | (y == NR_XCORR_NONE) | (z == NR_XCORR_NONE);

	m->three[n % NR_XCORR_KEPT] = (nr_u16)((nr_u32)nr_xcorr_value(x + y + z, NR_XCORR_THREE) |
					       ((0 - none) & NR_XCORR_NONE));
}

/* Sets newer and near. */
NR_NOINLINE int nr_xcorr_set_near(struct nr_xcorr_member *m)
{
	nr_u32 bits = 0;

	if (!m)
		return 0;
	for (nr_u32 n = 0; n < 2 * NR_XCORR_BINS; n++)
		bits |= (nr_u32)(m->bin[n] != NR_XCORR_NONE) << n;
	m->newer = bits >> NR_XCORR_BINS << NR_XCORR_BINS;
	m->near = bits;
	for (nr_u32 n = 1; n <= NR_XCORR_LAG_MAX; n++)
		m->near |= bits << n;
	return 1;
}

/*
 * Takes the new bins of member i. One that is another path than before, or was silent for long, is
 * forgotten until it has bins again.
 */
NR_NOINLINE int nr_xcorr_take(struct nr_xcorr_pairs *g, const struct nr_xcorr_summary *one,
			      const struct nr_scratch *d, nr_u32 i)
{
	struct nr_xcorr_member *m;
	nr_u32 follows;
	nr_s32 base;
	nr_u64 bit;

	if (!g || !one || !d)
		return 0;
	i %= NR_DETECT_MAX;
	m = &g->member[i];
	bit = 1ull << i;
	g->fresh &= ~bit;
	if (m->since != d->since[i] || (m->stamp && d->stamp - m->stamp > NR_XCORR_NEW)) {
		m->since = d->since[i];
		m->stamp = 0;
		g->known &= ~bit;
		g->anew |= bit;
	}
	if (!(d->present >> i & 1) || (nr_s32)(d->stamp - m->since) <= 0)
		return 0;
	base = one->base & ~NR_XCORR_NOISE;
	if (m->base != base)
		g->moved |= bit;
	follows = m->stamp && m->stamp + 1 == d->stamp && m->base == base;
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n++) {
		m->bin[n] = (nr_u16)(m->bin[NR_XCORR_BINS + n] | (follows - 1));
		m->bin[NR_XCORR_BINS + n] = one->bin[n];
	}
	for (nr_u32 n = 0; n < NR_XCORR_KEPT; n++)
		nr_xcorr_set_three(m, n);
	nr_xcorr_set_near(m);
	m->base = base;
	m->noise = nr_xcorr_unpack((nr_u32)(one->base & NR_XCORR_NOISE));
	m->stamp = d->stamp;
	g->fresh |= bit;
	g->known |= bit;
	return 1;
}

NR_INLINE void nr_xcorr_fade_sums(struct nr_xcorr_sums *w, nr_u32 shift)
{
	w->aa = nr_xcorr_fade(w->aa, shift);
	w->bb = nr_xcorr_fade(w->bb, shift);
	w->raa = nr_xcorr_fade(w->raa, shift);
	w->rbb = nr_xcorr_fade(w->rbb, shift);
	w->a = nr_xcorr_fade_signed(w->a, shift);
	w->b = nr_xcorr_fade_signed(w->b, shift);
	w->n = (nr_u32)nr_xcorr_fade(w->n, shift);
	w->m = (nr_u32)nr_xcorr_fade(w->m, shift);
}

NR_INLINE void nr_xcorr_fade_steps(struct nr_xcorr_steps *w, nr_u32 shift)
{
	w->squares = (nr_u32)nr_xcorr_fade(w->squares, shift);
	w->all_squares = (nr_u32)nr_xcorr_fade(w->all_squares, shift);
	w->count = (nr_u32)nr_xcorr_fade(w->count, shift);
	w->all = (nr_u32)nr_xcorr_fade(w->all, shift);
}

NR_INLINE void nr_xcorr_fade_lag(struct nr_xcorr_lag *w, nr_u32 shift)
{
	w->dd = nr_xcorr_fade(w->dd, shift);
	w->d = nr_xcorr_fade_signed(w->d, shift);
	w->n = (nr_u32)nr_xcorr_fade(w->n, shift);
}

/* The three bins `from` to `from` + 2 of both paths; count 0: no bin that both have. */
struct nr_xcorr_values {
	nr_s32 a, b;
	nr_u32 count;
};

NR_INLINE struct nr_xcorr_values nr_xcorr_values(const struct nr_xcorr_member *a, nr_u32 from_a,
						 const struct nr_xcorr_member *b, nr_u32 from_b)
{
	nr_u32 all_a = a->three[from_a % NR_XCORR_KEPT], all_b = b->three[from_b % NR_XCORR_KEPT];
	nr_u32 sum_a = 0, sum_b = 0, count = 0;

	if (all_a != NR_XCORR_NONE && all_b != NR_XCORR_NONE)
		return (struct nr_xcorr_values){(nr_s32)all_a, (nr_s32)all_b, NR_XCORR_THREE};
	for (nr_u32 k = 0; k < NR_XCORR_THREE; k++) {
		nr_u32 x = a->bin[(from_a + k) % NR_XCORR_KEPT];
		nr_u32 y = b->bin[(from_b + k) % NR_XCORR_KEPT];
		nr_u32 both = (x != NR_XCORR_NONE) & (y != NR_XCORR_NONE);

		sum_a += x * both;
		sum_b += y * both;
		count += both;
	}
	return (struct nr_xcorr_values){nr_xcorr_value(sum_a, count), nr_xcorr_value(sum_b, count),
					count};
}

NR_INLINE void nr_xcorr_add_both(struct nr_xcorr_sums *w, nr_s32 a, nr_s32 b)
{
	w->n += NR_XCORR_ONE;
	w->a += nr_xcorr_one(a);
	w->b += nr_xcorr_one(b);
	w->aa += nr_xcorr_square(a);
	w->bb += nr_xcorr_square(b);
}

NR_INLINE void nr_xcorr_add_changes(struct nr_xcorr_sums *w, nr_s32 a, nr_s32 b)
{
	w->m += NR_XCORR_ONE;
	w->raa += nr_xcorr_square(a);
	w->rbb += nr_xcorr_square(b);
}

/* Adds bins n to n + 2 of an interval, at lag 0, to the sums of members i and j. */
NR_NOINLINE int nr_xcorr_add(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 n)
{
	struct nr_xcorr_values v;
	struct nr_xcorr_pair *q;
	nr_s32 a, b;

	if (!g || !g->both)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	v = nr_xcorr_values(&g->member[i], NR_XCORR_BINS + n, &g->member[j], NR_XCORR_BINS + n);
	if (!v.count)
		return 0;
	if (!q->begun) {
		q->a = v.a;
		q->b = v.b;
	} else {
		a = nr_xcorr_within(v.a - q->last_a);
		b = nr_xcorr_within(v.b - q->last_b);
		nr_xcorr_add_changes(&q->fast, a, b);
		nr_xcorr_add_changes(&q->slow, a, b);
	}
	q->begun = 1;
	q->last_a = v.a;
	q->last_b = v.b;
	a = nr_xcorr_within(v.a - q->a);
	b = nr_xcorr_within(v.b - q->b);
	nr_xcorr_add_both(&q->fast, a, b);
	nr_xcorr_add_both(&q->slow, a, b);
	return 1;
}

/*
 * a - b of bins n to n + 2 at lag l, above NR_XCORR_FAR; 0: none. j is earlier by l - 5 bins, or i
 * by 5 - l.
 */
NR_NOINLINE nr_u32 nr_xcorr_difference(const struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 n,
				       nr_u32 l)
{
	const struct nr_xcorr_pair *q;
	struct nr_xcorr_values v;
	nr_u32 back_i, back_j;

	if (!g || l >= NR_XCORR_LAGS)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	back_i = l < NR_XCORR_LAG_MAX ? NR_XCORR_LAG_MAX - l : 0;
	back_j = l > NR_XCORR_LAG_MAX ? l - NR_XCORR_LAG_MAX : 0;
	v = nr_xcorr_values(&g->member[i], NR_XCORR_BINS + n - back_i, &g->member[j],
			    NR_XCORR_BINS + n - back_j);
	if (!v.count)
		return 0;
	return (nr_u32)(nr_xcorr_within((v.a - q->a) - (v.b - q->b)) + NR_XCORR_FAR);
}

NR_INLINE void nr_xcorr_add_more(struct nr_xcorr_lag *w, const struct nr_xcorr_lag *more)
{
	w->n += more->n;
	w->d += more->d;
	w->dd += more->dd;
}

/* Adds the last interval of members i and j at lag l. */
NR_NOINLINE int nr_xcorr_add_lag(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 l)
{
	struct nr_xcorr_lag more = {0};
	struct nr_xcorr_pair *q;
	nr_u32 above;
	nr_s32 d;

	if (!g || !g->both || l >= NR_XCORR_LAGS)
		return 0;
	q = &g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)];
	if (!q->begun)
		return 0;
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n += NR_XCORR_THREE) {
		above = nr_xcorr_difference(g, i, j, n, l);
		if (!above)
			continue;
		d = (nr_s32)above - NR_XCORR_FAR;
		more.n += NR_XCORR_ONE;
		more.d += nr_xcorr_one(d);
		more.dd += nr_xcorr_square(d);
	}
	nr_xcorr_add_more(&q->fast.lag[l], &more);
	nr_xcorr_add_more(&q->slow.lag[l], &more);
	return 1;
}

/* Makes the values of the slow sums as old as they are in interval `stamp`, and fades the line's.
 */
NR_INLINE void nr_xcorr_age(struct nr_xcorr_line *w, const struct nr_xcorr_sums *slow, nr_u32 stamp)
{
	nr_u32 more = w->stamp ? stamp - w->stamp : 0;

	if (more > NR_XCORR_NEW)
		more = NR_XCORR_NEW;
	w->stamp = stamp;
	w->kx += more * ((nr_s64)slow->a + slow->b);
	w->kk += 2ull * more * w->k + (nr_u64)more * more * slow->n;
	w->k += more * slow->n;
	w->kx -= (w->kx + (1 << (NR_XCORR_SLOW - 1))) >> NR_XCORR_SLOW;
	w->kk = nr_xcorr_fade(w->kk, NR_XCORR_SLOW);
	w->k = (nr_u32)nr_xcorr_fade(w->k, NR_XCORR_SLOW);
}

NR_NOINLINE int nr_xcorr_fade_pair(struct nr_xcorr_pair *q, nr_u32 stamp)
{
	if (!q)
		return 0;
	nr_xcorr_age(&q->line, &q->slow, stamp);
	nr_xcorr_fade_sums(&q->fast, NR_XCORR_FAST);
	nr_xcorr_fade_sums(&q->slow, NR_XCORR_SLOW);
	nr_xcorr_fade_steps(&q->fast.steps, NR_XCORR_FAST_STEPS);
	nr_xcorr_fade_steps(&q->slow.steps, NR_XCORR_SLOW);
	for (nr_u32 l = 0; l < NR_XCORR_LAGS; l++) {
		nr_xcorr_fade_lag(&q->fast.lag[l], NR_XCORR_FAST);
		nr_xcorr_fade_lag(&q->slow.lag[l], NR_XCORR_SLOW);
	}
	return 1;
}

NR_INLINE void nr_xcorr_move_sums(struct nr_xcorr_sums *w, nr_s32 a, nr_s32 b)
{
	w->aa = nr_xcorr_moved(w->aa, w->a, w->n, a);
	w->bb = nr_xcorr_moved(w->bb, w->b, w->n, b);
	w->a -= a * (nr_s32)w->n;
	w->b -= b * (nr_s32)w->n;
	for (nr_u32 l = 0; l < NR_XCORR_LAGS; l++) {
		struct nr_xcorr_lag *lag = &w->lag[l];

		lag->dd = nr_xcorr_moved(lag->dd, lag->d, lag->n, a - b);
		lag->d -= (a - b) * (nr_s32)lag->n;
	}
}

/*
 * References follow the means, as what rounding does to a sum of squares grows with the distance
 * from them. The sums are those about the new references, exactly.
 */
NR_NOINLINE int nr_xcorr_move(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j)
{
	struct nr_xcorr_pair *q;
	nr_s32 a, b;

	if (!g || g->answered)
		return 0;
	q = &g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)];
	a = nr_xcorr_step(q->slow.a, q->slow.n);
	b = nr_xcorr_step(q->slow.b, q->slow.n);
	if (!a && !b)
		return 0;
	nr_xcorr_move_sums(&q->fast, a, b);
	nr_xcorr_move_sums(&q->slow, a, b);
	q->a += a;
	q->b += b;
	q->line.kx -= (nr_s64)(a + b) * q->line.k;
	return 1;
}

/* n_eff, rounded down. */
NR_NOINLINE nr_u64 nr_xcorr_effective(const struct nr_xcorr_sums *w, nr_u64 aa, nr_u64 bb)
{
	struct nr_fx n, m, nn, a, b, of, part;

	if (!w)
		return 0;
	n = nr_fx(w->n);
	nn = nr_fx_mul(n, n);
	m = nr_fx_shift(nr_fx(w->m), 1);
	a = nr_fx_mul(m, nr_fx(aa));
	b = nr_fx_mul(m, nr_fx(bb));
	of = nr_fx_mul(a, b);
	/* f = part / of */
	part = nr_fx_mul(nr_xcorr_less(a, nr_fx_mul(nn, nr_fx(w->raa))),
			 nr_xcorr_less(b, nr_fx_mul(nn, nr_fx(w->rbb))));
	part = nr_fx_div(nr_xcorr_less(of, part), nr_fx_add(of, part));
	return nr_fx_fixed(nr_fx_mul(part, n), -NR_XCORR_FRACTION);
}

/* Is var(a - b) at a lag the smallest so far? */
NR_NOINLINE int nr_xcorr_better(struct nr_xcorr_pairs *g, const struct nr_xcorr_lag *lag,
				nr_u32 least, nr_u32 l)
{
	struct nr_fx here, best;
	nr_u64 spread;

	if (!g || !lag || lag->n < least)
		return 0;
	spread = nr_xcorr_spread(lag->dd, lag->d, lag->n);
	if (lag->n == g->best_n) {
		if (spread >= g->best)
			return 0;
	} else if (g->best_n) {
		here = nr_fx_mul(nr_fx(spread), nr_fx((nr_u64)g->best_n * g->best_n));
		best = nr_fx_mul(nr_fx(g->best), nr_fx((nr_u64)lag->n * lag->n));
		if (!nr_fx_less(here, best))
			return 0;
	}
	g->best = spread;
	g->best_n = lag->n;
	g->best_lag = l;
	return 1;
}

/*
 * Finds the lag at which members i and j are most alike by their fast or slow sums: best_n = 0 if
 * they have too few values. A lag counts if it has half as many as lag 0.
 */
NR_NOINLINE int nr_xcorr_find_lag(const struct nr_xcorr_params *p, struct nr_xcorr_pairs *g,
				  nr_u32 i, nr_u32 j, nr_u32 slow)
{
	const struct nr_xcorr_sums *w;
	struct nr_xcorr_pair *q;
	nr_u32 least;

	if (!p || !g || !g->both)
		return 0;
	q = &g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)];
	w = slow ? &q->slow : &q->fast;
	least = p->samples << NR_XCORR_FRACTION;
	g->best_n = 0;
	if (w->n < least)
		return 0;
	if (least < w->n / 2)
		least = w->n / 2;
	for (nr_u32 l = 0; l < NR_XCORR_LAGS; l++)
		nr_xcorr_better(g, &w->lag[l], least, l);
	return 1;
}

/* Adds what a - b at the best lag of the fast or slow sums changed in the last interval. */
NR_NOINLINE int nr_xcorr_add_steps(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	nr_u32 lag = NR_XCORR_LAG_MAX, last, above, count = 0;
	struct nr_xcorr_steps *w;
	struct nr_xcorr_pair *q;
	nr_u64 squares = 0, noise;

	if (!g || !g->both)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	w = slow ? &q->slow.steps : &q->fast.steps;
	if (g->best_n)
		lag = g->best_lag;
	if (lag + 1 < q->lag[slow & 1] || lag > q->lag[slow & 1] + 1u)
		w->squares = w->count = 0;
	q->lag[slow & 1] = (nr_u8)lag;
	last = nr_xcorr_difference(g, i, j, 0u - NR_XCORR_THREE, lag);
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n += NR_XCORR_THREE) {
		above = nr_xcorr_difference(g, i, j, n, lag);
		if (!above)
			continue;
		if (last) {
			squares += nr_xcorr_square(nr_xcorr_within((nr_s32)(above - last)));
			count += NR_XCORR_ONE;
		}
		last = above;
	}
	/* 2 / 3 (3 / 256)^2 is 6 / 2^16, as a value of a pair is 256 / 3 us. */
	noise = (g->member[i].noise + g->member[j].noise) * 6 >> (16 - NR_XCORR_FRACTION);
	squares = (squares << NR_XCORR_FRACTION) / (noise + 1);
	if (squares > NR_XCORR_STEPS_MAX * NR_XCORR_ONE)
		squares = NR_XCORR_STEPS_MAX * NR_XCORR_ONE;
	w->squares += (nr_u32)squares;
	w->all_squares += (nr_u32)squares;
	w->count += count;
	w->all += count;
	return 1;
}

/*
 * What clocks that differ by up to 200 ppm may have added to the squares of the slow sums, times
 * their number: what the line through x explains, halved as x is of two, or one of 200 ppm, which
 * is 9/8 an interval in x, if it is steeper.
 */
NR_INLINE nr_u64 nr_xcorr_drift(const struct nr_xcorr_line *w, const struct nr_xcorr_sums *slow)
{
	nr_s64 with = w->kx * slow->n - w->k * ((nr_s64)slow->a + slow->b);
	nr_u64 kk = nr_xcorr_spread(w->kk, (nr_s32)w->k, slow->n);
	nr_u64 kx = with < 0 ? 0 - (nr_u64)with : (nr_u64)with;

	if (kx / 9 >= kk / 8)
		return kx / 8 * 9 - kk / 128 * 81;
	return nr_fx_fixed(nr_fx_div(nr_fx_mul(nr_fx(kx), nr_fx(kx)), nr_fx(kk)), -1);
}

/*
 * Compares members i and j by their fast or slow sums, if there is no answer yet: 1 - L = left /
 * right for nr_xcorr_judge(); right = 0: they say nothing.
 */
NR_NOINLINE int nr_xcorr_compare(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	const struct nr_xcorr_sums *w;
	struct nr_xcorr_pair *q;
	nr_u64 both, drift = 0;
	struct nr_fx nn;

	if (!g || g->answered)
		return 0;
	g->right = nr_fx(0);
	q = &g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)];
	w = slow ? &q->slow : &q->fast;
	q->known.why = NR_FEW;
	if (!g->best_n)
		return 0;
	both = nr_xcorr_spread(w->aa, w->a, w->n) + nr_xcorr_spread(w->bb, w->b, w->n);
	if (slow)
		drift = nr_xcorr_drift(&q->line, w);
	if (drift > both)
		drift = both;
	q->known.why = NR_FLAT;
	if ((both - drift) * 2 < (nr_u64)w->n * w->n * NR_XCORR_FLAT)
		return 0;
	q->known.why = NR_BETWEEN;
	nn = nr_fx((nr_u64)g->best_n * g->best_n);
	g->left = nr_fx_mul(nr_fx(g->best), nr_fx((nr_u64)w->n * w->n));
	g->right = nr_fx_mul(nn, nr_fx(both));
	g->level = nr_fx_mul(nn, nr_fx(both - drift));
	return 1;
}

/* How many of the values of members i and j are independent, in the fast or the slow sums. */
NR_NOINLINE nr_u32 nr_xcorr_count(const struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	const struct nr_xcorr_sums *w;
	const struct nr_xcorr_pair *q;
	nr_u64 n_eff;

	if (!g)
		return 0;
	q = &g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)];
	w = slow ? &q->slow : &q->fast;
	n_eff = nr_xcorr_effective(w, nr_xcorr_spread(w->aa, w->a, w->n),
				   nr_xcorr_spread(w->bb, w->b, w->n));
	return n_eff < 0xffff ? (nr_u32)n_eff : 0xffff;
}

NR_NOINLINE int nr_xcorr_set_count(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	if (!g || g->answered || !g->right.m)
		return 0;
	g->n_eff = slow ? g->n_slow : nr_xcorr_count(g, i, j, 0);
	return 1;
}

/* Are their queues smooth? The slow sums tell, as of few values nobody can. */
NR_NOINLINE int nr_xcorr_set_smooth(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j)
{
	nr_u32 n;

	if (!g || g->answered)
		return 0;
	n = g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)].slow.n;
	g->n_slow = nr_xcorr_count(g, i, j, 1);
	g->smooth = 10ull * g->n_slow * NR_XCORR_ONE < 3ull * n;
	return 1;
}

/*
 * Then: does noise explain how they differ? Bins miss of one queue what it changes within them, so
 * that half of what a - b changes from one value to the next, squared, is less than a third of what
 * delays of either path change in 4 ms or somewhat more, squared, both together. Two queues differ
 * by more, also sawteeth of one period that began together. The steps at the lag that is the best
 * tell, if there are many of them; else those at all lags, as where noise is large the best one is
 * now this, now that. Few tell only that it explains.
 *
 * What the fast sums found holds when the slow ones are asked, which may still be at what was
 * before, and may find the other besides: then they are neither shared nor, lightly, separate.
 * Smooth queues are lines for seconds, of which the fast sums know nothing; and as many packets
 * pass in the time in which they change, their bins miss less.
 */
NR_NOINLINE int nr_xcorr_set_noise(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j, nr_u32 slow)
{
	const struct nr_xcorr_steps *of;
	const struct nr_xcorr_pair *q;
	nr_u32 squares, count, least;

	if (!g || g->answered || !g->right.m)
		return 0;
	g->line = g->smooth;
	if (g->smooth && !slow)
		return 0;
	q = &g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)];
	of = slow ? &q->slow.steps : &q->fast.steps;
	least = (slow ? NR_XCORR_MANY : NR_XCORR_MANY_FAST) * NR_XCORR_ONE;
	squares = of->squares;
	count = of->count;
	if (count < least) {
		squares = of->all_squares;
		count = of->all;
	}
	if (count < NR_XCORR_SOME * NR_XCORR_ONE)
		return 0;
	if (squares * (g->smooth ? 2 : 1) < count)
		g->noise |= NR_XCORR_EXPLAINS;
	if (count >= least && squares * 4 >= count * 3)
		g->noise |= NR_XCORR_TOO_LITTLE;
	if (count >= least && squares * 4 >= count * (g->smooth ? 3 : 4))
		g->noise |= NR_XCORR_REFUTES;
	if (count >= least && g->noise & NR_XCORR_EXPLAINS)
		g->line = 0;
	return 1;
}

/*
 * Then: the answer, if any. Queues that differ by more than noise are not shared, nor any more;
 * those that differ by noise alone are not separate.
 */
NR_NOINLINE int nr_xcorr_judge(const struct nr_xcorr_params *p, struct nr_xcorr_pairs *g, nr_u32 i,
			       nr_u32 j, nr_u32 slow)
{
	struct nr_xcorr_pair *q;
	nr_u32 answer, row;
	nr_u64 away, level, less, apart;

	if (!p || !g || g->answered || !g->right.m)
		return 0;
	q = &g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)];
	/* 1 - L, Q16 */
	away = nr_fx_fixed(nr_fx_div(g->left, g->right), 16);
	/* The same, less what clocks may have added. */
	level = nr_fx_fixed(nr_fx_div(g->left, g->level), 16);
	row = g->n_eff < NR_XCORR_THETAS ? g->n_eff : NR_XCORR_THETAS - 1;
	less = nr_xcorr_theta[row % NR_XCORR_THETAS];
	answer = NR_UNSURE;
	/* Where noise explains it, only if even then L would not be 0.5: five deviations less. */
	apart = g->noise & NR_XCORR_EXPLAINS ? 2 * NR_Q16 - less : NR_Q16;
	if (away + p->apart > apart && (slow || !(g->noise & NR_XCORR_EXPLAINS)))
		answer = NR_SEPARATE;
	if (level <= less && level <= NR_XCORR_LEAST)
		answer = NR_SHARED;
	if (answer == NR_SHARED && g->noise & NR_XCORR_TOO_LITTLE) {
		answer = NR_UNSURE;
		if (q->known.answer == NR_SHARED && g->noise & NR_XCORR_REFUTES)
			q->known = (struct nr_pair){.why = NR_BETWEEN};
	}
	if (answer == NR_UNSURE || (answer == NR_SHARED && g->line))
		return 0;
	g->answered = 1;
	g->found = answer;
	if (answer == NR_SHARED)
		away = level;
	g->alike = away < NR_Q16 ? (nr_u32)(NR_Q16 - away) >> 1 : 0;
	return 1;
}

/* The answer of members i and j in this interval, if any, becomes the one in force. */
NR_NOINLINE int nr_xcorr_conclude(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j)
{
	struct nr_xcorr_pair *q;

	if (!g || !g->both)
		return 0;
	q = &g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)];
	if (!g->found || !q->known.answer || g->found == q->known.answer)
		q->against = 0;
	else if (g->found == NR_SEPARATE && ++q->against < NR_XCORR_PART)
		return 0;
	if (!g->found)
		return 0;
	q->against = 0;
	q->known.answer = g->found;
	q->known.why = NR_SURE;
	q->known.stamp = g->stamp;
	q->known.alike = (nr_u16)g->alike;
	q->known.count = (nr_u16)g->n_eff;
	return 1;
}

/*
 * Of members i and j, forgets what is of another path or of other delays. If there are values of
 * them in this interval, their sums fade and it returns 1; else they stay, and the pair its answer.
 */
NR_NOINLINE int nr_xcorr_begin_pair(struct nr_xcorr_pairs *g, nr_u32 i, nr_u32 j)
{
	const struct nr_xcorr_member *one, *other;
	struct nr_xcorr_pair *q;

	if (!g)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	if ((g->anew | g->moved) >> i & 1 || (g->anew | g->moved) >> j & 1) {
		q->fast = (struct nr_xcorr_sums){0};
		q->slow = (struct nr_xcorr_sums){0};
		q->line = (struct nr_xcorr_line){0};
		q->begun = 0;
	}
	if (g->anew >> i & 1 || g->anew >> j & 1) {
		q->known = (struct nr_pair){0};
		q->begin = g->stamp;
		q->against = 0;
	}
	one = &g->member[i];
	other = &g->member[j];
	g->both = g->fresh >> i & g->fresh >> j & 1 &&
		  (one->newer & other->near) | (one->near & other->newer);
	g->found = NR_UNSURE;
	g->noise = 0;
	g->answered = !g->both;
	if (g->answered) {
		q->known.why = NR_FEW;
		return 0;
	}
	nr_xcorr_fade_pair(q, g->stamp);
	return 1;
}

/* The last interval of members i and j; 0: they have no new values. */
NR_NOINLINE int nr_xcorr_update_pair(const struct nr_xcorr_params *p, struct nr_xcorr_pairs *g,
				     nr_u32 i, nr_u32 j)
{
	if (!p || !g || !nr_xcorr_begin_pair(g, i, j))
		return 0;
	for (nr_u32 n = 0; n < NR_XCORR_BINS; n += NR_XCORR_THREE)
		nr_xcorr_add(g, i, j, n);
	for (nr_u32 l = 0; l < NR_XCORR_LAGS; l++)
		nr_xcorr_add_lag(g, i, j, l);
	nr_xcorr_move(g, i, j);
	nr_xcorr_set_smooth(g, i, j);
	for (nr_u32 slow = 0; slow < 2; slow++) {
		nr_xcorr_find_lag(p, g, i, j, slow);
		nr_xcorr_add_steps(g, i, j, slow);
		nr_xcorr_compare(g, i, j, slow);
		nr_xcorr_set_count(g, i, j, slow);
		nr_xcorr_set_noise(g, i, j, slow);
		nr_xcorr_judge(p, g, i, j, slow);
	}
	nr_xcorr_conclude(g, i, j);
	return 1;
}

#if NR_DETECT_MAX <= 8
/*
 * Bits of d->early: there is no answer for paths i and j, nor has there been time for one. To link
 * those that are apart until it is there costs more than to let those that share be two flows for
 * so long.
 */
NR_NOINLINE int nr_xcorr_set_early(const struct nr_xcorr_pairs *g, struct nr_scratch *d, nr_u32 i,
				   nr_u32 j)
{
	const struct nr_xcorr_pair *q;

	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	q = &g->pair[nr_xcorr_number(i, j)];
	if (d->near[i] >> j & 1 || q->known.answer || g->stamp - q->begin >= NR_XCORR_EARLY)
		return 0;
	d->early |= 1ull << (8 * i + j) | 1ull << (8 * j + i);
	return 1;
}

/* Sets d->known and d->early; near[i] are the paths known to share with i. */
NR_INLINE void nr_xcorr_couple(const struct nr_xcorr_pairs *g, struct nr_scratch *d)
{
	d->known = d->early = 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->known |= (d->near[i] & 0xff) << (8 * i);
	for (nr_u32 i = 1; i < NR_DETECT_MAX; i++)
		for (nr_u32 j = 0; j < i; j++)
			nr_xcorr_set_early(g, d, i, j);
}
#endif

/* Are the losses of one of members i and j random? What their delays have in common is no queue. */
NR_INLINE int nr_xcorr_lossy(const struct nr_scratch *d, nr_u32 i, nr_u32 j)
{
#if NR_DETECT_MAX <= 8
	return (d->lossy >> i | d->lossy >> j) & 1;
#else
	return 0;
#endif
}

/* Notes what is known of members i and j: bits of near[], and of apart[]. */
NR_NOINLINE int nr_xcorr_note(struct nr_xcorr_pairs *g, struct nr_scratch *d, nr_u32 i, nr_u32 j)
{
	nr_u32 answer;

	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	if (i == j || !(g->known >> i & g->known >> j & 1))
		return 0;
	answer = g->pair[nr_xcorr_number(i, j)].known.answer;
	if (answer == NR_SHARED && !nr_xcorr_lossy(d, i, j))
		d->near[i] |= 1ull << j;
	if (answer == NR_SEPARATE)
		g->apart[i] |= 1ull << j;
	return 1;
}

/* Adds to apart[i] what the others of i's group, near[i], are known to be separate from. */
NR_NOINLINE int nr_xcorr_spread_apart(struct nr_xcorr_pairs *g, const struct nr_scratch *d,
				      nr_u32 i)
{
	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	for (nr_u32 k = 0; k < NR_DETECT_MAX; k++)
		g->apart[i] |= g->apart[k] & (0 - (d->near[i] >> k & 1));
	return 1;
}

/* among[i]: i's group, and the members with an answer, d->of, of groups that may be the same. */
NR_NOINLINE int nr_xcorr_set_among(struct nr_xcorr_pairs *g, const struct nr_scratch *d, nr_u32 i)
{
	nr_u64 among = d ? d->of : 0;

	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	for (nr_u32 k = 0; k < NR_DETECT_MAX; k++)
		if (g->apart[i] & d->near[k])
			among &= ~(1ull << k);
	g->among[i] = among | d->near[i] | 1ull << i;
	return 1;
}

/* May member i be of two groups that are known to be separate, or of any? Then it has no place. */
NR_NOINLINE int nr_xcorr_settle(const struct nr_xcorr_pairs *g, struct nr_scratch *d, nr_u32 i)
{
	nr_u64 all, doubt = 0;

	if (!g || !d)
		return 0;
	i %= NR_DETECT_MAX;
	all = g->among[i];
	for (nr_u32 k = 0; k < NR_DETECT_MAX; k++)
		doubt |= all & ~g->among[k] & (0 - (all >> k & 1));
	if (doubt)
		d->of &= ~(1ull << i);
	return 1;
}

/*
 * Groups the members by what is known of their pairs.
 *
 * Members without any answer are undecided: they may share with all. Groups of shared pairs may be
 * the same while no pair across them is known to be separate: those that may all be the same are
 * one, as not sure means coupled. A group that may be the same as two that are separate is
 * undecided; those two are not.
 */
NR_INLINE void nr_xcorr_group(struct nr_xcorr_pairs *g, struct nr_scratch *d)
{
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		d->near[i] = 0;
		g->apart[i] = 0;
		for (nr_u32 j = 0; j < NR_DETECT_MAX; j++)
			nr_xcorr_note(g, d, i, j);
	}
	d->of = 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		d->of |= (nr_u64)((d->near[i] | g->apart[i]) != 0) << i;
		d->near[i] |= 1ull << i;
	}
	nr_components(d);
#if NR_DETECT_MAX <= 8
	nr_xcorr_couple(g, d);
#endif
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		nr_xcorr_spread_apart(g, d, i);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		nr_xcorr_set_among(g, d, i);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		nr_xcorr_settle(g, d, i);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		d->near[i] = g->among[i] & (d->of | 1ull << i);
	nr_components(d);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		if (!(d->of >> i & 1))
			d->place[i] = NR_UNDECIDED;
}

/* The new bins of member i. */
NR_INLINE nr_u32 nr_xcorr_take_one(const void *summaries, void *pairs, const struct nr_scratch *d,
				   nr_u32 i)
{
	const struct nr_xcorr_summary *of = summaries;
	struct nr_xcorr_pairs *g = pairs;

	if (!i) {
		g->stamp = d->stamp;
		g->anew = g->moved = 0;
	}
	return (nr_u32)nr_xcorr_take(g, &of[i % NR_DETECT_MAX], d, i);
}

NR_INLINE nr_u32 nr_xcorr_compare_pair(const void *own, void *pairs, nr_u32 i, nr_u32 j)
{
	return (nr_u32)nr_xcorr_update_pair(own, pairs, i, j);
}

/* The places of all members. */
NR_INLINE void nr_xcorr_place(const void *own, const void *summaries, void *pairs,
			      struct nr_scratch *d)
{
	nr_xcorr_group(pairs, d);
}

/* The newest observation is the decision: the pairs remember. */
NR_INLINE struct nr_pace nr_xcorr_pace(const void *own, const struct nr_decision_params *decision)
{
	return (struct nr_pace){NR_XCORR_T_US, NR_XCORR_T_US, 1, 1, 1, 0};
}

NR_INLINE struct nr_pair nr_xcorr_pair_of(const void *pairs, nr_u32 i, nr_u32 j)
{
	const struct nr_xcorr_pairs *g = pairs;

	return g->pair[nr_xcorr_number(i % NR_DETECT_MAX, j % NR_DETECT_MAX)].known;
}

/* Bins are published an interval later, and decided on another one later. */
NR_INLINE nr_u64 nr_xcorr_warm_up(const void *own)
{
	const struct nr_xcorr_params *p = own;

	return (nr_u64)p->start_us + p->settle_us + 4 * NR_XCORR_T_US;
}

NR_DETECTOR(xcorr) = {
    .name = "xcorr",
    .code = "xc",
    .about = "groups paths whose delays rise and fall at the same moments by the same amount",
    .source = "this project",
    NR_TAKES(xcorr),
    .measures = NR_BY_DELAY,
    NR_KEEPS(xcorr),
    .pairs = sizeof(struct nr_xcorr_pairs),
    .reset = nr_xcorr_reset,
    .sample = nr_xcorr_sample,
    .take = nr_xcorr_take_one,
    .compare = nr_xcorr_compare_pair,
    .group = nr_xcorr_place,
    .pace = nr_xcorr_pace,
    .pair = nr_xcorr_pair_of,
    .warm_up_us = nr_xcorr_warm_up,
};

#endif
