/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a detector is to everything around it: a table of facts and hooks at the end of its header.
 * detectors.def lists the detectors.
 *
 * A fixed one gives a joining path its mask, and no more. One that decides, called
 * NAME, has `struct nr_NAME`, what it keeps of a path, with a member `struct nr_NAME_summary
 * summary`, what a path publishes of an interval, and parameters, `struct nr_NAME_params`. Its
 * hooks are given these parameters as `own`. watch.h runs it on a connection, many.c on captures.
 */
#ifndef NARROWS_DETECTOR_H
#define NARROWS_DETECTOR_H

#include "shared.h"
#include "param.h"
#include "detect/decision.h"
#include "detect/sample.h"

#define NR_DETECTORS_MAX 16

/* What a detector that decides measures. */
enum nr_goes_by {
	NR_BY_NOTHING = 0, /* fixed */
	NR_BY_DELAY,	   /* delays and losses of a path */
	NR_BY_BANDWIDTH,   /* nr_path.bw, which model laws publish */
};

/* Parameters of a detector under one name: those of `set` ("n=50 m=30"), the others' defaults. */
struct nr_preset {
	const char *name;
	const char *set;
};

struct nr_detector {
	const char *name;
	const char *code; /* in the kernel's names of controls, at most 3 characters */
	const char *about;
	const char *source;
	const struct nr_param *param;
	const struct nr_preset *preset; /* `NAME.preset` takes these; ends with a null name */
	nr_u32 params;
	nr_u32 goes_by;	   /* enum nr_goes_by */
	nr_u32 state;	   /* bytes kept of a path */
	nr_u32 summary;	   /* bytes published of an interval */
	nr_u32 summary_at; /* where they stand in the state */

	/* Fixed: the masks of a connection without paths, and the row of one that joins as path i.
	 */
	nr_u64 masks;
	nr_u32 (*row)(nr_u32 i);

	/* Deciding. */
	void (*reset)(void *state);
	/* Takes a sample in; the stamp of the interval that it closed, or 0. */
	nr_u32 (*sample)(const void *own, void *state, const struct nr_sample *s);
	/* Places the members of d->present by their summaries. */
	void (*group)(const void *own, const void *summaries, struct nr_scratch *d);
	struct nr_pace (*pace)(const void *own, const struct nr_decision_params *decision);
	/* The paths that paths ask to be coupled with; null: by `decision`. */
	struct nr_decision_params (*couples)(const void *own,
					     const struct nr_decision_params *decision);
	/*
	 * Do parameters contradict each other? What is expected instead of the value of parameter
	 * number *n, or null.
	 */
	const char *(*fault)(const void *own, nr_u32 *n);
	/* For how long nothing is known of a path that carries data. */
	nr_u64 (*warm_up_us)(const void *own);
};

#define NR_DETECTOR(name) static const struct nr_detector nr_detector_##name __attribute__((unused))

/* In the table of one that decides: its state and summary. */
#define NR_KEEPS(name)                                                                             \
	.state = sizeof(struct nr_##name), .summary = sizeof(struct nr_##name##_summary),          \
	.summary_at = NR_OFFSETOF(struct nr_##name, summary)

#endif
