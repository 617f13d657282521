/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The largest value of the last rounds (Kathleen Nichols' windowed filter; Linux: win_minmax.c). */
#ifndef NARROWS_BBR_FILTER_H
#define NARROWS_BBR_FILTER_H

#include "../../nr_port.h"

/* The largest, and the largest since each of them: instead of all values of the window. */
struct nr_max {
	nr_u32 value[3];
	nr_u16 round[3]; /* low bits of their numbers */
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

NR_INLINE void nr_max_put(struct nr_max *m, nr_u32 from, nr_u16 round, nr_u32 value)
{
	for (nr_u32 n = 0; n < 3; n++) {
		if (n < from)
			continue;
		m->value[n] = value;
		m->round[n] = round;
	}
}

NR_INLINE nr_u32 nr_max_age(const struct nr_max *m, nr_u32 n, nr_u16 round)
{
	return (nr_u16)(round - m->round[n]);
}

/* A value in round `in`, which holds for `rounds` rounds. */
NR_NOINLINE int nr_max_sample(struct nr_max *m, nr_u32 rounds, nr_u32 in, nr_u32 value)
{
	nr_u16 round = (nr_u16)in;
	nr_u32 age;

	if (!m)
		return 0;
	age = nr_max_age(m, 0, round);
	if (value >= m->value[0] || nr_max_age(m, 2, round) > rounds) {
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
		if (nr_max_age(m, 0, round) > rounds) {
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
