/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What xcorr keeps: of a path, what a path publishes, of a pair, of a connection.
 *
 *   path        ring of bins; sums that tell the longest gap to fill; noise; since when it counts
 *   published   an interval's bins, seven words: those of the interval before, so that the next
 *               samples can close a gap
 *   pair        sums, fast and slow, with those of a - b at each lag; the line that clocks may
 *               make; the answer in force
 *   connection  the bins of each member's last two intervals, and all pairs. The path that is at a
 *               decision writes it
 *
 * Units: us; in bins 64 us; in pairs 6/8 of that (means of one, two or three bins without a
 * division), sums with 10 bits of fraction.
 * Valid: delays within 1 s of the path's first, otherwise its sums start over; in pairs within
 * 0.35 s of their mean, more counts as that; lags within 100 ms.
 */
#ifndef NARROWS_XCORR_STATE_H
#define NARROWS_XCORR_STATE_H

#include "../../detector.h"
#include "../../nr_fx.h"

#define NR_XCORR_BIN_US 20000u
#define NR_XCORR_BINS 12u /* of an interval */
#define NR_XCORR_T_US (NR_XCORR_BINS * NR_XCORR_BIN_US)
#define NR_XCORR_NONE 0xffffu /* an empty bin */
#define NR_XCORR_RING 64u     /* bins that a path keeps; a power of two */
#define NR_XCORR_KEPT 32u     /* bins kept of two intervals, a power of two for BPF's verifier */
#define NR_XCORR_LAGS 11u
#define NR_XCORR_LAG_MAX 5u /* bins */
#define NR_XCORR_NEW 64u    /* intervals without a path until it is forgotten */
#define NR_XCORR_NOISE 63   /* the bits of noise in a published base */

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
	nr_u16 last_a, last_b;
	nr_u32 bounded; /* squared steps at all lags, slow, each at most 8 times what N explains */
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

/* How slowly the queues of a pair change. */
enum nr_xcorr_queues {
	NR_XCORR_ROUGH = 0,
	NR_XCORR_LINES,	 /* smooth: what was seen of them may be but straight lines */
	NR_XCORR_SMOOTH, /* smooth, and noise explains how they differ */
};

/*
 * Does noise explain how two differ? Bits, as it may explain it barely, or by the fast sums and not
 * by the slow ones.
 */
enum nr_xcorr_noise {
	NR_XCORR_EXPLAINS = 1,	 /* not separate, unless much less alike */
	NR_XCORR_TOO_LITTLE = 2, /* not shared */
	NR_XCORR_REFUTES = 4,	 /* not shared any more */
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
	 * Scratch of the pair at hand: n^2 var(a - b) at the best lag, and n; 1 - L = left / right,
	 * and with less for what clocks may add, left / level.
	 */
	nr_u64 best;
	struct nr_fx left, right, level;
	nr_u32 best_n;
	nr_u32 n_eff, n_slow; /* n_slow: that of the slow sums */
	nr_u32 queues;	      /* enum nr_xcorr_queues */
	nr_u32 noise;	      /* what it says of how they differ, enum nr_xcorr_noise */
	nr_u32 found;	      /* the answer in this interval, enum nr_answer */
	nr_u32 alike;	      /* then: L, Q15 */
	/* Scratch: members known to be separate from i's group, and those that may be of it. */
	nr_u64 apart[NR_DETECT_MAX];
	nr_u64 among[NR_DETECT_MAX];
	struct nr_xcorr_member member[NR_DETECT_MAX];
	struct nr_xcorr_pair pair[NR_XCORR_PAIRS];
};

/* The pair of members i and j. */
NR_INLINE nr_u32 nr_xcorr_number(nr_u32 i, nr_u32 j)
{
	nr_u32 more, less, number;

	i %= NR_DETECT_MAX;
	j %= NR_DETECT_MAX;
	more = i > j ? i : j;
	less = i > j ? j : i;
	number = more * (more - 1) / 2 + less;
	/* BPF's verifier knows no bound after a division, but after a test. */
	return number < NR_XCORR_PAIRS ? number : 0;
}

#endif
