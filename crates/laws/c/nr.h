/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one header a host includes. An event goes to the detector, which may change masks, and then
 * to the law, which reads them. law, detector and start are constants in most hosts, and then only
 * that control is compiled in.
 *
 * The answer stands in the path's published line: cwnd, ssthresh, pacing_rate, advice.
 */
#ifndef NARROWS_NR_H
#define NARROWS_NR_H

#include "window.h"
#include "detect/shared.h"
#include "detect/disjoint.h"

/*
 * A host whose detectors never listen defines NR_STATIC_DETECTORS, and nothing of those that do is
 * compiled in: before 6.8 the kernel's verifier checks every global function of an object, used or
 * not.
 */
#ifdef NR_STATIC_DETECTORS
struct nr_watch;
#else
#include "detect/watch.h"
#endif

/* An empty connection, before its first path joins. Its memory is all zero. */
NR_INLINE void nr_conn_init(struct nr_conn *c, nr_u32 law, nr_u32 detector)
{
	c->masks = detector == NR_DISJOINT ? NR_MASKS_DISJOINT : NR_MASKS_SHARED;
	c->version = NR_VERSION;
	c->law = law;
}

/*
 * The detector's part of an event, alone: where one listens that runs no law. `w` is what a
 * listening detector keeps of the connection; without it every path is taken to share.
 */
NR_INLINE void nr_detect(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
			 const struct nr_event *ev)
{
#ifndef NR_STATIC_DETECTORS
	if (detector >= NR_SSC && w) {
		nr_watch_event(detector, c, w, i, ev);
		return;
	}
#endif
	if (ev->kind != NR_JOINED)
		return;
	if (detector == NR_DISJOINT)
		nr_disjoint_join(c, i);
	else
		nr_shared_join(c, i);
}

NR_INLINE void nr_on_event(nr_u32 law, nr_u32 detector, nr_u32 start, struct nr_conn *c,
			   struct nr_watch *w, nr_u32 i, struct nr_private *p,
			   const struct nr_event *ev)
{
	nr_detect(detector, c, w, i & 7, ev);
	nr_window_event(law, start, c, i & 7, p, ev);
}

#endif
