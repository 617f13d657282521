/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All dynamic detectors: their parameters, and room for the state of any of them. */
#ifndef NARROWS_DETECT_DECIDING_H
#define NARROWS_DETECT_DECIDING_H

#include "../detector.h"
#include "../detectors.def"

#define NR_HISTORY_WORDS 215 /* of 64 bits: a detector's state of a path */

/*
 * Parameters of decisions and of all dynamic detectors: one word each, in the order of their lists
 * and of detectors.def. The size does not depend on the detectors.
 */
#define NR_PARAM_WORDS 128
#define NR_PARAMS_MEMBER(n, name) struct nr_##name##_params name;
struct nr_params {
	union {
		struct {
			struct nr_decision_params decision;
			NR_DYNAMIC(NR_PARAMS_MEMBER)
		};
		nr_u32 word[NR_PARAM_WORDS];
	};
};
NR_STATIC_ASSERT(sizeof(struct nr_params) == sizeof(nr_u32[NR_PARAM_WORDS]),
		 "more parameters of detectors than NR_PARAM_WORDS");

/*
 * What the detector keeps of a connection: of pairs of members 544 bytes each, and of members. Only
 * the path that is at a decision writes it. A native detector has memory of its own size.
 */
#define NR_PAIRS_WORDS (13 + 68 * NR_DETECT_MAX * (NR_DETECT_MAX - 1) / 2 + 22 * NR_DETECT_MAX)
NR_STATIC_ASSERT(sizeof(struct nr_xcorr_pairs) <= sizeof(nr_u64[NR_PAIRS_WORDS]),
		 "what a detector keeps of pairs is larger than NR_PAIRS_WORDS");

#define NR_FITS(n, name)                                                                           \
	NR_STATIC_ASSERT(sizeof(struct nr_##name##_summary) <= sizeof(nr_u32[7]),                  \
			 "detector " #name ": its summary is larger than a record's 7 words");     \
	NR_STATIC_ASSERT(sizeof(struct nr_##name) <= sizeof(nr_u64[NR_HISTORY_WORDS]),             \
			 "detector " #name ": its state is larger than NR_HISTORY_WORDS");
NR_DECIDING(NR_FITS)

/* What all paths published for an interval. */
#define NR_SUMMARY_MEMBER(n, name) struct nr_##name##_summary name[NR_DETECT_MAX];
union nr_summaries {
	NR_DECIDING(NR_SUMMARY_MEMBER)
	nr_u32 word[7 * NR_DETECT_MAX]; /* the size does not depend on the detectors */
};

/* Is the detector dynamic? */
#define NR_DECIDES(n, name) || detector == n
NR_INLINE int nr_decides(nr_u32 detector)
{
	return 0 NR_DECIDING(NR_DECIDES);
}

#endif
