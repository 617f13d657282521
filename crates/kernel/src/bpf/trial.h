/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a trial counts, and when a guard is broken: plain integers, without the kernel, so that
 * tests run them, too. ../trial.rs mirrors these structs.
 *
 * The unit is a connection: it is drawn as a whole, so it counts once, with what is known of it
 * now. It counts once it had something to send: NR_TRIAL_BYTES acknowledged, or NR_TRIAL_BUSY_MS in
 * which data waited or was out.
 *
 *   goodput        log2 of bytes acknowledged per busy second, NR_LOG_BITS fractional bits
 *   retransmits    of the segments sent the share that were retransmissions, 16 fractional bits
 *   srtt           smoothed round-trip time of its subflows in the mean, in bins of 1/8 octave
 *
 * A guard compares the arms at each look, as often as it likes: it is broken when the trial's arm
 * lies beyond the limit by more than the boundary of an asymptotic confidence sequence
 * (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Time-uniform central limit theory and
 * asymptotic confidence sequences, Annals of Statistics 52(6), 2024, Theorem 2.2; the boundary is
 * Robbins' normal mixture). With n connections and V the variance of the estimate it is
 *
 *   sqrt(V) * c,   c^2 = (1 + 1/x) * (ln(1 + x) - 2 ln(alpha)),   x = n rho^2
 *
 * and narrowest near `planned` connections for rho^2 = (-2 ln(alpha) + ln(1 - 2 ln(alpha))) /
 * planned (their section 3.3). alpha is 0.05 / 3, as three values are compared. crates/stats has
 * the same in floating point, for what is reported.
 */
#ifndef NR_TRIAL_H
#define NR_TRIAL_H

#include "nr_port.h"

#define NR_TRIAL_BYTES 20000
#define NR_TRIAL_BUSY_MS 1000
/* Connections of each arm, at least, before a guard can break: the boundary is asymptotic. */
#define NR_TRIAL_LEAST 30

/* A thousandth of the segments may always be retransmitted more: of nothing there is no multiple.
 */
#define NR_TRIAL_RETRANS 66ull

#define NR_LOG_BITS 10
#define NR_SRTT_BINS 256 /* of 1/8 octave, from 1 us */
#define NR_SRTT_SHIFT (NR_LOG_BITS - 3)

/* By arm: 0 keeps its control, 1 has the one that is tried. */
#define NR_ARMS 2
/* By the number of subflows that carried data (1, 2, more) and bytes acknowledged (1e5, 1e6, 1e7).
 */
#define NR_TRIAL_SIZES 4
#define NR_TRIAL_STRATA (3 * NR_TRIAL_SIZES)

/* Sums over connections. */
struct nr_trial_sums {
	nr_u64 n;
	nr_u64 goodput;
	nr_u64 goodput2; /* of the squares */
	nr_u64 retrans;
	nr_u64 retrans2;
	nr_u64 bytes;
	nr_u64 busy_ms;
	nr_u64 segs;
	nr_u64 retrans_segs;
	nr_u64 paths;
	nr_u64 grouped; /* connections whose control knows groups of paths */
	nr_u64 groups;	/* of those */
	nr_u64 silent_ms;
};

struct nr_trial_arm {
	struct nr_trial_sums sums[NR_TRIAL_STRATA];
	nr_u64 srtt[NR_SRTT_BINS];
};

struct nr_trial_result {
	struct nr_trial_arm arm[NR_ARMS];
};

/* What is known of one connection. */
struct nr_outcome {
	nr_u64 bytes;	    /* acknowledged */
	nr_u64 mptcp_bytes; /* likewise of the MPTCP socket, each once; 0: not known */
	nr_u64 segs;
	nr_u64 retrans;
	nr_u32 busy_ms;
	nr_u32 silent_ms;
	nr_u32 srtt_us;
	nr_u32 paths;
	nr_u32 groups; /* 0: unknown */
	nr_u32 reserved;
};

enum nr_trial_end {
	NR_TRIAL_RUNS = 0,
	NR_TRIAL_STOPPED, /* by the command */
	NR_TRIAL_TIME,	  /* is over */
	NR_TRIAL_GONE,	  /* a control cannot be chosen any more */
	NR_TRIAL_GOODPUT, /* guards */
	NR_TRIAL_RETRANSMITS,
	NR_TRIAL_SRTT,
};

/* Limits; 0: no such guard. */
struct nr_trial_guards {
	nr_u32 goodput;	    /* -log2 of the least ratio, NR_LOG_BITS fractional bits, plus one */
	nr_u32 retransmits; /* the largest ratio, 8 fractional bits */
	nr_u32 srtt;	    /* bins by which the 95th percentile may lie higher, plus one */
	nr_u32 planned;	    /* connections; see above */
};

/* log2(x), NR_LOG_BITS fractional bits; of 0 that of 1. */
NR_INLINE nr_u32 nr_log2(nr_u64 x)
{
	nr_u32 whole = 63 - NR_CLZ64(x | 1), log = whole;
	/* x / 2^whole, from 2^31 to below 2^32 for 1 to 2. */
	nr_u64 mantissa = whole > 31 ? x >> (whole - 31) : (x | !x) << (31 - whole);

	for (nr_u32 bit = 0; bit < NR_LOG_BITS; bit++) {
		mantissa = mantissa * mantissa >> 31;
		log = log << 1 | (nr_u32)(mantissa >> 32);
		mantissa >>= mantissa >> 32;
	}
	return log;
}

/* Did it have something to send? */
NR_INLINE int nr_trial_counts(const struct nr_outcome *o)
{
	return o->bytes >= NR_TRIAL_BYTES || o->busy_ms >= NR_TRIAL_BUSY_MS;
}

NR_INLINE nr_u32 nr_trial_stratum(const struct nr_outcome *o)
{
	nr_u32 paths = (o->paths >= 2) + (o->paths >= 3);
	nr_u32 size = (o->bytes >= 100000) + (o->bytes >= 1000000) + (o->bytes >= 10000000);

	return paths * NR_TRIAL_SIZES + size;
}

/* Of one that stands still, a byte a second. */
NR_INLINE nr_u32 nr_trial_goodput(const struct nr_outcome *o)
{
	return nr_log2(o->bytes * 1000 / (o->busy_ms ? o->busy_ms : 1));
}

NR_INLINE nr_u32 nr_trial_retrans(const struct nr_outcome *o)
{
	nr_u64 share = o->segs ? (o->retrans << 16) / o->segs : 0;

	return share > 65536 ? 65536 : (nr_u32)share;
}

NR_INLINE nr_u32 nr_trial_bin(nr_u32 srtt_us)
{
	nr_u32 bin = nr_log2(srtt_us) >> NR_SRTT_SHIFT;

	/* The compiler knows the bound and would drop the mask, which the verifier needs. */
	__asm__ volatile("" : "+r"(bin));
	return bin & (NR_SRTT_BINS - 1);
}

/* Adds a connection; at the same moment others may. */
NR_INLINE void nr_trial_count(struct nr_trial_arm *arm, const struct nr_outcome *o)
{
	struct nr_trial_sums *s = &arm->sums[nr_trial_stratum(o)];
	nr_u64 goodput = nr_trial_goodput(o), retrans = nr_trial_retrans(o);

	__sync_fetch_and_add(&s->n, 1);
	__sync_fetch_and_add(&s->goodput, goodput);
	__sync_fetch_and_add(&s->goodput2, goodput * goodput);
	__sync_fetch_and_add(&s->retrans, retrans);
	__sync_fetch_and_add(&s->retrans2, retrans * retrans);
	__sync_fetch_and_add(&s->bytes, o->bytes);
	__sync_fetch_and_add(&s->busy_ms, o->busy_ms);
	__sync_fetch_and_add(&s->segs, o->segs);
	__sync_fetch_and_add(&s->retrans_segs, o->retrans);
	__sync_fetch_and_add(&s->paths, o->paths);
	__sync_fetch_and_add(&s->grouped, !!o->groups);
	__sync_fetch_and_add(&s->groups, o->groups);
	__sync_fetch_and_add(&s->silent_ms, o->silent_ms);
	__sync_fetch_and_add(&arm->srtt[nr_trial_bin(o->srtt_us)], 1);
}

/* SipHash-2-4 of two words (Aumasson and Bernstein, 2012). */
#define NR_SIP_ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))
#define NR_SIP_ROUND                                                                               \
	do {                                                                                       \
		v0 += v1;                                                                          \
		v2 += v3;                                                                          \
		v1 = NR_SIP_ROTATE(v1, 13) ^ v0;                                                   \
		v3 = NR_SIP_ROTATE(v3, 16) ^ v2;                                                   \
		v0 = NR_SIP_ROTATE(v0, 32) + v3;                                                   \
		v2 += v1;                                                                          \
		v3 = NR_SIP_ROTATE(v3, 21) ^ v0;                                                   \
		v1 = NR_SIP_ROTATE(v1, 17) ^ v2;                                                   \
		v2 = NR_SIP_ROTATE(v2, 32);                                                        \
	} while (0)

NR_INLINE nr_u64 nr_siphash(nr_u64 k0, nr_u64 k1, nr_u64 a, nr_u64 b)
{
	nr_u64 v0 = k0 ^ 0x736f6d6570736575ull, v1 = k1 ^ 0x646f72616e646f6dull;
	nr_u64 v2 = k0 ^ 0x6c7967656e657261ull, v3 = k1 ^ 0x7465646279746573ull;
	const nr_u64 words[3] = {a, b, 16ull << 56};

	for (nr_u32 i = 0; i < 3; i++) {
		v3 ^= words[i];
		NR_SIP_ROUND;
		NR_SIP_ROUND;
		v0 ^= words[i];
	}
	v2 ^= 0xff;
	NR_SIP_ROUND;
	NR_SIP_ROUND;
	NR_SIP_ROUND;
	NR_SIP_ROUND;
	return v0 ^ v1 ^ v2 ^ v3;
}

/* Mean and variance of a value: 8 and 16 bits finer than the value and its square. */
struct nr_moments {
	nr_u64 n;
	nr_u64 mean;
	nr_u64 variance;
};

NR_INLINE struct nr_moments nr_moments(nr_u64 n, nr_u64 sum, nr_u64 squares)
{
	struct nr_moments m = {.n = n};
	nr_u64 square;

	if (!n)
		return m;
	m.mean = (sum << 8) / n;
	square = ((squares / n) << 16) + ((squares % n) << 16) / n;
	m.variance = square > m.mean * m.mean ? square - m.mean * m.mean : 0;
	return m;
}

/* c^2 of the boundary, 8 fractional bits: -2 ln(0.05 / 3) is 8.1887, and 10.4066 what rho^2 is by.
 */
NR_INLINE nr_u64 nr_trial_boundary2(nr_u64 n, nr_u32 planned)
{
	nr_u64 x = n * 10912111 / (planned ? planned : 1); /* 20 fractional bits */
	nr_u64 ln;

	if (!x)
		x = 1;
	/* log2(1 + x) ln(2), 16 fractional bits: 45426 is ln(2) 2^16. */
	ln = ((nr_u64)(nr_log2((1 << 20) + x) - (20 << NR_LOG_BITS)) * 45426 >> NR_LOG_BITS) +
	     536655;
	return (ln + (ln << 20) / x) >> 8;
}

/*
 * Is the mean of a beyond that of b times `ratio` (8 fractional bits) plus `offset` (as the mean)
 * by more than the boundary?
 */
NR_INLINE int nr_trial_beyond(const struct nr_moments *a, const struct nr_moments *b, nr_u32 ratio,
			      nr_u64 offset, nr_u32 planned)
{
	nr_u64 limit, variance, beyond, boundary2 = nr_trial_boundary2(a->n + b->n, planned);

	/* Or it is so early that the boundary is 64 standard errors away, and products are too
	 * large. */
	if (a->n < NR_TRIAL_LEAST || b->n < NR_TRIAL_LEAST || boundary2 >> 20)
		return 0;
	limit = (b->mean * ratio >> 8) + offset;
	if (a->mean <= limit)
		return 0;
	beyond = a->mean - limit;
	variance = a->variance / a->n + ((b->variance * ratio >> 8) / b->n * ratio >> 8);
	return beyond * beyond > (boundary2 * (variance >> 4) >> 4) + 1;
}

/* Of an arm, over all strata. */
NR_INLINE struct nr_trial_sums nr_trial_total(const struct nr_trial_arm *arm)
{
	struct nr_trial_sums all = {};

	for (nr_u32 i = 0; i < NR_TRIAL_STRATA; i++) {
		const struct nr_trial_sums *s = &arm->sums[i];

		all.n += s->n;
		all.goodput += s->goodput;
		all.goodput2 += s->goodput2;
		all.retrans += s->retrans;
		all.retrans2 += s->retrans2;
		NR_FORGET();
	}
	return all;
}

/* A share of n, 16 fractional bits, and what it varies by. */
NR_INLINE struct nr_moments nr_trial_share(nr_u64 n, nr_u64 share)
{
	struct nr_moments m = {
	    .n = n, .mean = share << 8, .variance = (share * (65536 - share)) << 16};

	return m;
}

/*
 * Does more than a twentieth of the trial's arm have an srtt beyond the other's 95th percentile and
 * `bins`?
 */
NR_INLINE int nr_trial_slow(const struct nr_trial_arm *trial, nr_u64 n1,
			    const struct nr_trial_arm *other, nr_u64 n0, nr_u32 bins,
			    nr_u32 planned)
{
	const nr_u64 twentieth = 65536 / 20;
	struct nr_moments a, b;
	nr_u64 below = 0, beyond = 0, limit = 0, share;

	if (!n0 || !n1)
		return 0;
	for (nr_u32 i = 0; i < NR_SRTT_BINS; i++) {
		below += other->srtt[i];
		/* 1 while it is less; without branches, of which the verifier follows each. */
		limit += (below * 20 - n0 * 19) >> 63;
		NR_FORGET();
	}
	limit += bins;
	for (nr_u32 i = 0; i < NR_SRTT_BINS; i++) {
		beyond += trial->srtt[i] * ((limit - i) >> 63);
		NR_FORGET();
	}
	share = (beyond << 16) / n1;
	if (share > 65536)
		share = 65536;
	a = nr_trial_share(n1, share);
	b = nr_trial_share(n0, twentieth);
	/* As much as may be: of none that is beyond nothing would be known. */
	if (a.variance < b.variance)
		a.variance = b.variance;
	return nr_trial_beyond(&a, &b, 1 << 8, 0, planned);
}

/* Which guard is broken; NR_TRIAL_RUNS: none. */
NR_INLINE nr_u32 nr_trial_broken(const struct nr_trial_result *result,
				 const struct nr_trial_guards *guards)
{
	const struct nr_trial_arm *other = &result->arm[0], *trial = &result->arm[1];
	struct nr_trial_sums all0 = nr_trial_total(other), all1 = nr_trial_total(trial);
	struct nr_moments a, b;

	/* The other is beyond the trial by more than log2 of the ratio. */
	a = nr_moments(all0.n, all0.goodput, all0.goodput2);
	b = nr_moments(all1.n, all1.goodput, all1.goodput2);
	if (guards->goodput &&
	    nr_trial_beyond(&a, &b, 1 << 8, (nr_u64)(guards->goodput - 1) << 8, guards->planned))
		return NR_TRIAL_GOODPUT;
	a = nr_moments(all1.n, all1.retrans, all1.retrans2);
	b = nr_moments(all0.n, all0.retrans, all0.retrans2);
	if (guards->retransmits &&
	    nr_trial_beyond(&a, &b, guards->retransmits, NR_TRIAL_RETRANS << 8, guards->planned))
		return NR_TRIAL_RETRANSMITS;
	if (guards->srtt &&
	    nr_trial_slow(trial, all1.n, other, all0.n, guards->srtt - 1, guards->planned))
		return NR_TRIAL_SRTT;
	return NR_TRIAL_RUNS;
}

#endif
