// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tables and the detectors as functions of the platform's ABI, for src/raw.rs. */
#include "detectors.h"
#include "detect/peer_decision.h"
#include "laws.def"
#include "module.h"
#include <stddef.h>

const struct nr_module *narrows_law(nr_u32 number);
const struct nr_start *narrows_start(nr_u32 number);
const struct nr_detector *narrows_detector(nr_u32 number);
const struct nr_param *narrows_decision_param(nr_u32 n);
const struct nr_param *narrows_window_param(nr_u32 n);
nr_u64 narrows_warm_up_us(nr_u32 detector, const struct nr_params *p);
struct nr_pace narrows_pace(nr_u32 detector, const struct nr_params *p);
int narrows_pair(nr_u32 detector, const struct nr_detection *det, nr_u32 i, nr_u32 j,
		 struct nr_pair *pair);
int narrows_loses_at_random(const struct nr_detection *det, nr_u32 i);
nr_u32 narrows_first_row(nr_u32 detector, nr_u32 i, const struct nr_params *p);
void narrows_conn_init(struct nr_conn *c, nr_u32 law, nr_u32 detector, const nr_u32 *window,
		       const nr_u32 *param, const nr_u32 *join);
void narrows_detection_init(struct nr_detection *det, const struct nr_params *p);
void narrows_detect(nr_u32 detector, struct nr_conn *c, struct nr_detection *det, nr_u32 i,
		    const struct nr_event *ev);
int narrows_peer_decide(struct nr_conn *c, struct nr_detection *det, struct nr_peer_decision *p,
			nr_u32 i, nr_u32 epoch, nr_u32 place, nr_u64 now_us);
void narrows_masks_set(struct nr_conn *c, nr_u64 masks, nr_u64 cuts);
nr_u32 narrows_debit_take(struct nr_conn *c, nr_u32 donor, nr_u32 want, nr_u32 keep);
int narrows_tick_claim(struct nr_conn *c, nr_u64 number);
int narrows_masks_store(struct nr_conn *c, nr_u64 seen, nr_u64 masks);

#define NR_LAW_EXTERN(n, name) extern const struct nr_module narrows_law_##name;
#define NR_LAW_CASE(n, name)                                                                       \
	case n:                                                                                    \
		return &narrows_law_##name;
NR_LAWS(NR_LAW_EXTERN)

/* The law of a number in laws.def, or null. */
const struct nr_module *narrows_law(nr_u32 number)
{
	switch (number) {
		NR_LAWS(NR_LAW_CASE)
	}
	return NULL;
}

#define NR_START_CASE(n, name)                                                                     \
	case n:                                                                                    \
		return &nr_start_##name;

const struct nr_start *narrows_start(nr_u32 number)
{
	switch (number) {
		NR_STARTS(NR_START_CASE)
	}
	return NULL;
}

#define NR_DETECTOR_CASE(n, name)                                                                  \
	case n:                                                                                    \
		return &nr_detector_##name;

const struct nr_detector *narrows_detector(nr_u32 number)
{
	switch (number) {
		NR_FIXED(NR_DETECTOR_CASE)
		NR_DECIDING(NR_DETECTOR_CASE)
	}
	return NULL;
}

/* Parameter n of decisions and of all window laws; null after the last. */
const struct nr_param *narrows_decision_param(nr_u32 n)
{
	return n < sizeof(nr_decision_param) / sizeof(nr_decision_param[0]) ? &nr_decision_param[n]
									    : NULL;
}

const struct nr_param *narrows_window_param(nr_u32 n)
{
	return n < sizeof(nr_window_param) / sizeof(nr_window_param[0]) ? &nr_window_param[n]
									: NULL;
}

#define NR_OWN_CASE(n, name)                                                                       \
	case n:                                                                                    \
		return &p->name;

/* The parameters of a dynamic detector. */
static const void *own(nr_u32 detector, const struct nr_params *p)
{
	switch (detector) {
		NR_DECIDING(NR_OWN_CASE)
	}
	return NULL;
}

/* How long a new path stays undecided, us; the pace of decisions. 0 for a fixed detector. */
nr_u64 narrows_warm_up_us(nr_u32 detector, const struct nr_params *p)
{
	return nr_decides(detector) ? narrows_detector(detector)->warm_up_us(own(detector, p)) : 0;
}

struct nr_pace narrows_pace(nr_u32 detector, const struct nr_params *p)
{
	if (!nr_decides(detector))
		return (struct nr_pace){0};
	return narrows_detector(detector)->pace(own(detector, p), &p->decision);
}

/*
 * What is known of paths i and j; an answer from before one of them joined, or left, is none. 0 if
 * the detector keeps nothing of pairs.
 */
int narrows_pair(nr_u32 detector, const struct nr_detection *det, nr_u32 i, nr_u32 j,
		 struct nr_pair *pair)
{
	const struct nr_detector *d = narrows_detector(detector);

	i &= 7;
	j &= 7;
	if (!d->pair)
		return 0;
	*pair = d->pair(nr_detection_pairs(d, (struct nr_detection *)det), i, j);
	if ((nr_s32)(pair->stamp - det->path[i].since) <= 0 ||
	    (nr_s32)(pair->stamp - det->path[j].since) <= 0)
		*pair = (struct nr_pair){.why = pair->answer ? NR_FEW : pair->why};
	return 1;
}

/* Are the losses of path i random? */
int narrows_loses_at_random(const struct nr_detection *det, nr_u32 i)
{
	return det->path[i & 7].loss.random;
}

/* The paths that joining path i is coupled with, as bits. */
nr_u32 narrows_first_row(nr_u32 detector, nr_u32 i, const struct nr_params *p)
{
	const struct nr_detector *d = narrows_detector(detector);

	if (!nr_decides(detector))
		return d->row(i);
	return nr_first_row(d, own(detector, p), p, i);
}

/* `window`, `param`, `join`: parameters of all window laws, of the law, of the slow start. */
void narrows_conn_init(struct nr_conn *c, nr_u32 law, nr_u32 detector, const nr_u32 *window,
		       const nr_u32 *param, const nr_u32 *join)
{
	*c = (struct nr_conn){0};
	nr_conn_init(c, law, detector);
	for (nr_u32 n = 0; n < 2; n++)
		c->window[n] = window[n];
	for (nr_u32 n = 0; n < NR_LAW_PARAMS; n++)
		c->param[n] = param[n];
	for (nr_u32 n = 0; n < NR_JOIN_PARAMS; n++)
		c->join[n] = join[n];
}

void narrows_detection_init(struct nr_detection *det, const struct nr_params *p)
{
	*det = (struct nr_detection){.params = *p};
}

void narrows_detect(nr_u32 detector, struct nr_conn *c, struct nr_detection *det, nr_u32 i,
		    const struct nr_event *ev)
{
	nr_detect(detector, c, det, i & 7, ev);
}

/* Path i receives its place in decision `epoch` of the peer. */
int narrows_peer_decide(struct nr_conn *c, struct nr_detection *det, struct nr_peer_decision *p,
			nr_u32 i, nr_u32 epoch, nr_u32 place, nr_u64 now_us)
{
	return nr_peer_part(p, i, NR_PART(epoch, place), (nr_u32)(now_us / 1000)) &&
	       nr_peer_decide(c, det, p, i, now_us);
}

void narrows_masks_set(struct nr_conn *c, nr_u64 masks, nr_u64 cuts)
{
	nr_masks_set(c, masks, cuts);
}

nr_u32 narrows_debit_take(struct nr_conn *c, nr_u32 donor, nr_u32 want, nr_u32 keep)
{
	return nr_debit_take(c, donor, want, keep);
}

int narrows_tick_claim(struct nr_conn *c, nr_u64 number)
{
	return nr_tick_claim(c, number);
}

int narrows_masks_store(struct nr_conn *c, nr_u64 seen, nr_u64 masks)
{
	return nr_masks_store(c, seen, masks);
}
