/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The detector that a control names, by its number; and a connection before its first path. */
#ifndef NARROWS_DETECTORS_H
#define NARROWS_DETECTORS_H

#include "detector.h"
#include "detectors.def"

#ifndef NR_STATIC_DETECTORS
#include "detect/detection.h"
#else
struct nr_detection;
NR_INLINE int nr_decides(nr_u32 detector)
{
	(void)detector;
	return 0;
}
#endif

#define NR_FIXED_MASKS(n, name)                                                                    \
	case n:                                                                                    \
		return nr_detector_##name.masks;
#define NR_FIXED_JOIN(n, name)                                                                     \
	case n:                                                                                    \
		nr_masks_join(c, i, nr_detector_##name.row(i), nr_detector_##name.row(i));         \
		return;

/*
 * Until a detector that decides has decided, all paths may share, and none is known to; and with a
 * number that is not listed, always. Returns the masks of a fixed one, else `undecided`.
 */
NR_INLINE nr_u64 nr_first_masks(nr_u32 detector, nr_u64 undecided)
{
	switch (detector) {
		NR_FIXED(NR_FIXED_MASKS)
	}
	return undecided;
}

/* An empty connection, before its first path joins. Its memory is all zero. */
NR_INLINE void nr_conn_init(struct nr_conn *c, nr_u32 law, nr_u32 detector)
{
	c->masks = nr_first_masks(detector, NR_MASKS_SHARED);
	c->cuts = nr_first_masks(detector, NR_MASKS_DISJOINT);
	c->version = NR_VERSION;
	c->law = law;
}

/* A path joins under a detector that does not decide, or without room for what one that does keeps.
 */
NR_INLINE void nr_fixed_join(nr_u32 detector, struct nr_conn *c, nr_u32 i)
{
	switch (detector) {
		NR_FIXED(NR_FIXED_JOIN)
	}
	nr_masks_join(c, i, 0xff, 1u << (i & 7));
}

/*
 * Shows the detector an event. `det` is what one that decides keeps of the connection; without it
 * every path may share. 1: a decision may be due, or at hand.
 */
NR_INLINE int nr_detect_shown(nr_u32 detector, struct nr_conn *c, struct nr_detection *det,
			      nr_u32 i, const struct nr_event *ev)
{
#ifndef NR_STATIC_DETECTORS
	if (det && nr_decides(detector))
		return nr_detection_event(detector, c, det, i, ev);
#endif
	if (ev->kind == NR_JOINED)
		nr_fixed_join(detector, c, i);
	return 0;
}

/*
 * The detector's part of an event, alone: where one runs without a law. Returns what the event led
 * to, enum nr_decided. Acknowledgements alone decide: a host of BPF leaves the code of decisions
 * out of its programs for other events (nr_detect_shown), as the verifier looks at it in each.
 */
NR_INLINE nr_u32 nr_detect(nr_u32 detector, struct nr_conn *c, struct nr_detection *det, nr_u32 i,
			   const struct nr_event *ev)
{
	if (!nr_detect_shown(detector, c, det, i, ev) || ev->kind != NR_ACKED)
		return NR_NOT_DECIDED;
#ifndef NR_STATIC_DETECTORS
	return nr_detection_tick(detector, c, det, i, ev->now_us);
#else
	return NR_NOT_DECIDED;
#endif
}

#endif
