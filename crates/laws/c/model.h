/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared code of all model laws: a path's join and end, and what it publishes. The law's hook
 * `event` then sets cwnd and pacing rate, in recovery as well.
 */
#ifndef NARROWS_MODEL_H
#define NARROWS_MODEL_H

#include "law.h"

NR_INLINE void nr_model_event(NR_HOOK)
{
	struct nr_path *line = &c->path[i & 7];

	if (ev->kind == NR_LEFT) {
		nr_clear(c, i);
		*p = (struct nr_private){0};
		return;
	}
	if (ev->kind == NR_JOINED) {
		nr_clear(c, i);
		nr_debit_drop(c, i);
		*p = (struct nr_private){0};
		NR_WRITE(line->generation, line->generation + 1);
		nr_set_ssthresh(c, i, p, NR_SSTHRESH_MAX);
		nr_set_cwnd(c, i, p, ev->cwnd ? ev->cwnd : NR_INIT_CWND);
	}
	if (!p->cwnd) /* no path: Linux calls some hooks before init and after release */
		return;
	nr_publish(line, ev);
	if (ev->cwnd && ev->cwnd != p->cwnd) /* the host may have clamped it */
		nr_set_cwnd(c, i, p, ev->cwnd);
	nr_this.event(NR_ARGS);
}

#endif
