/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A model law of tests: a constant pacing rate and a window that does not limit it. It publishes
 * the kinds of events that the path has had, as bits.
 */
#ifndef NARROWS_LAWS_PACED_H
#define NARROWS_LAWS_PACED_H

#include "law.h"

#define NR_PACED_RATE 625000 /* bytes/s: 5 Mbit/s */
#define NR_PACED_CWND 400    /* packets */

NR_INLINE void nr_paced_event(NR_HOOK)
{
	struct nr_path *line = &c->path[i & 7];

	if (ev->kind == NR_JOINED || ev->kind == NR_LEFT) {
		nr_clear(c, i);
		*p = (struct nr_private){0};
	}
	if (ev->kind == NR_LEFT || (ev->kind != NR_JOINED && !p->cwnd))
		return;
	nr_publish(line, ev);
	nr_set_cwnd(c, i, p, NR_PACED_CWND);
	nr_set_ssthresh(c, i, p, NR_SSTHRESH_MAX);
	NR_WRITE(line->pacing_rate, NR_PACED_RATE);
	NR_WRITE(line->word[0], line->word[0] | 1u << (ev->kind & 31));
}

NR_LAW(paced) = {
    .name = "paced",
    .code = "paced",
    .about = "a constant rate",
    .source = "a test",
    .kind = NR_MODEL,
    .event = nr_paced_event,
};

#endif
