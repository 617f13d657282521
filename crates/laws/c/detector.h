/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface of a detector: a table of facts and hooks at the end of its header. detectors.def
 * lists the detectors.
 *
 * A fixed detector only gives a joining path its mask. A dynamic one, called NAME, has `struct
 * nr_NAME`, its state of a path, with a member `struct nr_NAME_summary summary`, which a path
 * publishes for each interval, and parameters, `struct nr_NAME_params`, passed to its hooks as
 * `own`. detection.h runs it on a connection, many.c on captures.
 */
#ifndef NARROWS_DETECTOR_H
#define NARROWS_DETECTOR_H

#include "shared.h"
#include "param.h"
#include "detect/decision.h"
#include "detect/sample.h"

#define NR_DETECTORS_MAX 16

/* What a dynamic detector measures. */
enum nr_measures {
	NR_BY_NOTHING = 0, /* fixed */
	NR_BY_DELAY,	   /* delays and losses of a path */
	NR_BY_BANDWIDTH,   /* nr_path.bw, which model laws publish */
};

/* What an event led to. */
enum nr_decided {
	NR_NOT_DECIDED = 0,
	NR_DECIDED,
	NR_REGROUPED, /* decided, and the group of a path is another one than before */
};

/* What is known of two members. */
enum nr_answer { NR_UNSURE = 0, NR_SHARED, NR_SEPARATE };

/* Why their newest interval said nothing. */
enum nr_why {
	NR_FEW = 0, /* too few delays that both have, or none counts */
	NR_FLAT,    /* no queue that changes */
	NR_BETWEEN, /* less alike than in one queue, more than in two */
	NR_SURE,    /* it said something */
};

struct nr_pair {
	nr_u32 answer; /* enum nr_answer in force */
	nr_u32 why;    /* enum nr_why */
	nr_u32 stamp;  /* of the newest interval that gave the answer; 0: none */
	nr_u16 alike;  /* then: how alike their delays were, Q15 */
	nr_u16 count;  /* then: independent observations */
};

/* A named set of parameters: those in `set` ("n=50 m=30"), defaults for the others. */
struct nr_preset {
	const char *name;
	const char *set;
};

struct nr_detector {
	const char *name;
	const char *code; /* its part of a control's name in the kernel, at most 3 characters */
	const char *about;
	const char *source;
	const struct nr_param *param;
	const struct nr_preset *preset; /* values of `NAME.preset`; ends with a null name */
	nr_u32 params;
	nr_u32 measures;   /* enum nr_measures */
	nr_u32 state;	   /* bytes per path */
	nr_u32 summary;	   /* bytes published per interval */
	nr_u32 summary_at; /* their offset in the state */
	nr_u32 pairs;	   /* bytes kept of a connection, for `group`; all zero at first */
	nr_u32 native;	   /* 1: a decision is too much work, or memory, for BPF */

	/* Fixed: the masks of a connection without paths, and the row of joining path i. */
	nr_u64 masks;
	nr_u32 (*row)(nr_u32 i);

	/* Dynamic. */
	void (*reset)(void *state);
	/* Takes a sample; returns the stamp of the interval that it closed, or 0. */
	nr_u32 (*sample)(const void *own, void *state, const struct nr_sample *s);
	/*
	 * A decision, in three parts. `pairs` is what the detector keeps of members; one path at a
	 * time is at it. Takes what member i published into it, if it is of d->present, each member
	 * once and in order; returns if it was. Null: nothing.
	 */
	nr_u32 (*take)(const void *summaries, void *pairs, const struct nr_scratch *d, nr_u32 i);
	/*
	 * Compares members i and j < i, each pair once; returns if it had to, as there were new
	 * values. Null: `group` does all.
	 */
	nr_u32 (*compare)(const void *own, void *pairs, nr_u32 i, nr_u32 j);
	/* Groups the members of d->present by their summaries, or by what it keeps of pairs. */
	void (*group)(const void *own, const void *summaries, void *pairs, struct nr_scratch *d);
	struct nr_pace (*pace)(const void *own, const struct nr_decision_params *decision);
	/*
	 * What is known of members i and j; null: it keeps nothing of pairs. One that does sets
	 * `known` and `early` of the scratch in `group`, and a path whose losses are random
	 * (detect/random_loss.h) is coupled with none.
	 */
	struct nr_pair (*pair)(const void *pairs, nr_u32 i, nr_u32 j);
	/* Which paths to couple besides groups; null: as `decision` says. */
	struct nr_decision_params (*couples)(const void *own,
					     const struct nr_decision_params *decision);
	/* How long a path that carries data stays undecided at first. */
	nr_u64 (*warm_up_us)(const void *own);
};

#define NR_DETECTOR(name) static const struct nr_detector nr_detector_##name __attribute__((unused))

/* In the table of a dynamic detector: its state and summary. */
#define NR_KEEPS(name)                                                                             \
	.state = sizeof(struct nr_##name), .summary = sizeof(struct nr_##name##_summary),          \
	.summary_at = NR_OFFSETOF(struct nr_##name, summary)

#endif
