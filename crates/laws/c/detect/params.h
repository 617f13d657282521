/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What can be set about the detectors. Ratios are Q16 (65536 is 1), times microseconds. Each value
 * is one word, and src/params.rs names it with its default, range and source.
 */
#ifndef NARROWS_DETECT_PARAMS_H
#define NARROWS_DETECT_PARAMS_H

#include "../nr_port.h"

#define NR_Q16 65536

/* RFC 8382, section 2.2; MPTCP-SBD, Table I. */
struct nr_ssc_params {
	nr_u32 t_us;  /* T, length of an interval */
	nr_u32 n;     /* N, intervals of the key frequency, and of loss */
	nr_u32 m;     /* M, intervals of the mean, skewness and variability */
	nr_u32 f;     /* F, newest intervals of full weight; M where nothing is weighted */
	nr_s32 c_s;   /* skewness below which there is congestion */
	nr_s32 c_h;   /* the same, where there was congestion before */
	nr_u32 p_l;   /* loss above which there is congestion whatever the skewness */
	nr_u32 p_f;   /* key frequencies this near are alike */
	nr_u32 p_mad; /* variabilities this near, of the higher, are alike */
	nr_u32 p_s;   /* skewnesses this near are alike */
	nr_u32 p_d;   /* losses this near, of the higher, are alike */
	nr_u32 p_v;   /* of the variability: half the band around the mean that is no crossing */
	nr_u32 mask_noise;    /* 1: of intervals without congestion, no variability, no crossing */
	nr_u32 loss_for_skew; /* 1: where a path loses more than p_l, loss divides, not skewness */
	nr_u32 clock_skew;    /* 1: the clocks of delays run apart */
	nr_u32 trusted;	      /* intervals before a path's estimates are trusted */
};

/* arXiv:1812.05816 */
struct nr_tr_params {
	nr_u32 t_us;	  /* length of an interval */
	nr_u32 settle_us; /* after an interval's end, until it is decided on */
	nr_u32 alpha;	  /* weight of the new sample */
	nr_u32 gap_us;	  /* delta: groups of rising delay this near in time may be one */
	nr_u32 eps;	  /* slopes this near, of the larger, are alike */
	nr_u32 tau_us;	  /* groups of two paths this near in time may be compared */
	nr_u32 slope_min; /* us/s: slopes up to this are like no other */
	nr_u32 hold_us;	  /* paths stay coupled for as long after they were last found alike */
	nr_u32 undecided; /* enum nr_couple: of a path that nothing is known of yet */
};

/* C-MPBBR, IEEE Access 2020 */
struct nr_btlbw_params {
	nr_u32 t_us;   /* length of an interval */
	nr_u32 alpha;  /* bandwidths this near, of the smaller, are alike */
	nr_u32 cycles; /* ProbeBW cycles for which they must be, or must not be any more */
};

/* decision.h */
struct nr_decision_params {
	nr_u32 observations; /* newest observations that a decision looks at */
	nr_u32 together;     /* of so many, at which two paths are grouped */
	nr_u32 every;	     /* observations from a decision to the next */
	nr_u32 undecided;    /* enum nr_couple: of a path that nothing is known of yet */
	nr_u32 clear;	     /* enum nr_couple: of a path that is not congested */
	nr_u32 grouped;	     /* enum nr_couple: of a path in a group, beside its group */
};

struct nr_params {
	struct nr_ssc_params ssc;
	struct nr_tr_params tr;
	struct nr_btlbw_params btlbw;
	struct nr_decision_params decision;
};

#endif
