/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The largest value of the last rounds (Kathleen Nichols' windowed filter; Linux: win_minmax.c). */
#ifndef NARROWS_BBR_FILTER_H
#define NARROWS_BBR_FILTER_H

#include "../../nr_port.h"

/* The largest, and the largest since each of them: instead of all values of the window. */
struct nr_max {
	nr_u32 value[3];
	nr_u32 round[3];
};

NR_INLINE nr_u32 nr_max(const struct nr_max *m)
{
	return m->value[0];
}

NR_INLINE void nr_max_move(struct nr_max *m, nr_u32 to, nr_u32 from)
{
	m->value[to] = m->value[from];
	m->round[to] = m->round[from];
}

NR_INLINE void nr_max_put(struct nr_max *m, nr_u32 from, nr_u32 round, nr_u32 value)
{
	for (nr_u32 n = 0; n < 3; n++) {
		if (n < from)
			continue;
		m->value[n] = value;
		m->round[n] = round;
	}
}

/* A value in `round`, which holds for `rounds` rounds. */
NR_NOINLINE int nr_max_sample(struct nr_max *m, nr_u32 rounds, nr_u32 round, nr_u32 value)
{
	nr_u32 age;

	if (!m)
		return 0;
	age = round - m->round[0];
	if (value >= m->value[0] || round - m->round[2] > rounds) {
		nr_max_put(m, 0, round, value);
		return 1;
	}
	if (value >= m->value[1])
		nr_max_put(m, 1, round, value);
	else if (value >= m->value[2])
		nr_max_put(m, 2, round, value);
	if (age > rounds) { /* the largest has passed, and perhaps the next */
		nr_max_move(m, 0, 1);
		nr_max_move(m, 1, 2);
		nr_max_put(m, 2, round, value);
		if (round - m->round[0] > rounds) {
			nr_max_move(m, 0, 1);
			nr_max_move(m, 1, 2);
		}
	} else if (m->round[1] == m->round[0] && age > rounds / 4) {
		nr_max_put(m, 1, round, value); /* none in a quarter of the window */
	} else if (m->round[2] == m->round[1] && age > rounds / 2) {
		nr_max_put(m, 2, round, value);
	}
	return 1;
}

#endif
