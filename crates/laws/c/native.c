// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The laws as functions of the platform's ABI, for the Rust side; see src/raw.rs. */
#include "nr.h"
#include <stddef.h>

void narrows_conn_init(struct nr_conn *c, nr_u32 law, nr_u32 detector);
void narrows_watch_init(struct nr_watch *w, const struct nr_params *p);
void narrows_event(nr_u32 law, nr_u32 detector, nr_u32 start, struct nr_conn *c, struct nr_watch *w,
		   nr_u32 i, struct nr_private *p, const struct nr_event *ev);
void narrows_detect(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
		    const struct nr_event *ev);
void narrows_masks_set(struct nr_conn *c, nr_u64 masks);
nr_u32 narrows_debit_take(struct nr_conn *c, nr_u32 donor, nr_u32 want, nr_u32 keep);
int narrows_tick_claim(struct nr_conn *c, nr_u64 number);
int narrows_masks_store(struct nr_conn *c, nr_u64 seen, nr_u64 masks);
nr_u32 narrows_layout(nr_u32 which);

void narrows_conn_init(struct nr_conn *c, nr_u32 law, nr_u32 detector)
{
	*c = (struct nr_conn){0};
	nr_conn_init(c, law, detector);
}

void narrows_watch_init(struct nr_watch *w, const struct nr_params *p)
{
	*w = (struct nr_watch){.params = *p};
}

/* One compiled copy for each law, as in a kernel that runs only one. */
void narrows_event(nr_u32 law, nr_u32 detector, nr_u32 start, struct nr_conn *c, struct nr_watch *w,
		   nr_u32 i, struct nr_private *p, const struct nr_event *ev)
{
	switch (law) {
	case NR_RENO:
		nr_on_event(NR_RENO, detector, start, c, w, i, p, ev);
		break;
	case NR_CUBIC:
		nr_on_event(NR_CUBIC, detector, start, c, w, i, p, ev);
		break;
	case NR_LIA:
		nr_on_event(NR_LIA, detector, start, c, w, i, p, ev);
		break;
	case NR_OLIA:
		nr_on_event(NR_OLIA, detector, start, c, w, i, p, ev);
		break;
	case NR_BALIA:
		nr_on_event(NR_BALIA, detector, start, c, w, i, p, ev);
		break;
	default:
		break;
	}
}

void narrows_detect(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
		    const struct nr_event *ev)
{
	nr_detect(detector, c, w, i & 7, ev);
}

void narrows_masks_set(struct nr_conn *c, nr_u64 masks)
{
	nr_masks_set(c, masks);
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

/* Sizes and offsets, for the test that src/raw.rs describes the same memory. */
nr_u32 narrows_layout(nr_u32 which)
{
	static const nr_u32 layout[] = {
	    sizeof(struct nr_event),	       offsetof(struct nr_event, kind),
	    offsetof(struct nr_event, owd_us), offsetof(struct nr_event, cwnd),
	    offsetof(struct nr_event, mss),    sizeof(struct nr_path),
	    offsetof(struct nr_path, debit),   offsetof(struct nr_path, bw),
	    offsetof(struct nr_path, word),    sizeof(struct nr_conn),
	    offsetof(struct nr_conn, law),     offsetof(struct nr_conn, path),
	    offsetof(struct nr_conn, record),  sizeof(struct nr_private),
	    sizeof(struct nr_params),	       offsetof(struct nr_params, decision),
	    sizeof(struct nr_watch),	       offsetof(struct nr_watch, decided_us),
	    offsetof(struct nr_watch, ring),   offsetof(struct nr_watch, path),
	};

	return which < sizeof(layout) / sizeof(layout[0]) ? layout[which] : 0;
}
