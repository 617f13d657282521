// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The detectors on flows of a capture: more members than a connection has paths, and intervals end
 * by the clock, as packets are read in order. For src/detect.rs.
 */
#define NR_DETECT_MAX 64
#include "detect/deciding.h"

struct nr_many {
	struct nr_params params;
	nr_u32 detector;
	nr_u32 decided; /* stamp of the newest decision */
	struct nr_ring ring;
	struct nr_scratch scratch;
	nr_u64 flow[NR_DETECT_MAX][NR_HISTORY_WORDS];
	nr_u64 pairs[NR_PAIRS_WORDS];
};

/* Here a native detector's fit, too. */
NR_STATIC_ASSERT(sizeof(struct nr_dcw_pairs) <= sizeof(nr_u64[NR_PAIRS_WORDS]),
		 "what a detector keeps of pairs is larger than NR_PAIRS_WORDS");

/* A detector and its parameters. */
struct nr_one {
	const struct nr_detector *d;
	const void *own;
};

nr_u64 narrows_many_size(void);
void narrows_many_init(struct nr_many *m, nr_u32 detector, const struct nr_params *params);
nr_u32 narrows_many_sample(struct nr_many *m, nr_u32 flow, const struct nr_sample *s);
int narrows_many_close(struct nr_many *m, nr_u64 number, nr_u8 *observed, nr_u8 *decided);
int narrows_many_pair(const struct nr_many *m, nr_u32 i, nr_u32 j, struct nr_pair *pair);

nr_u64 narrows_many_size(void)
{
	return sizeof(struct nr_many);
}

#define NR_ONE_OF(n, name)                                                                         \
	case n:                                                                                    \
		return (struct nr_one){&nr_detector_##name, &m->params.name};

static struct nr_one one(const struct nr_many *m)
{
	switch (m->detector) {
		NR_DECIDING(NR_ONE_OF)
	}
	return (struct nr_one){0};
}

/* The memory is all zero, and the detector dynamic. */
void narrows_many_init(struct nr_many *m, nr_u32 detector, const struct nr_params *params)
{
	m->params = *params;
	m->detector = detector;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		one(m).d->reset(m->flow[i]);
}

/* A sample of a flow; returns the stamp of the interval that it closed, or 0. */
nr_u32 narrows_many_sample(struct nr_many *m, nr_u32 flow, const struct nr_sample *s)
{
	struct nr_one by = one(m);

	return by.d->sample(by.own, m->flow[flow % NR_DETECT_MAX], s);
}

static void observe(struct nr_many *m)
{
	struct nr_one by = one(m);
	union nr_summaries all;

	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		const nr_u8 *summary = (const nr_u8 *)m->flow[i] + by.d->summary_at;

		for (nr_u32 n = 0; n < by.d->summary / 4; n++)
			all.word[i * (by.d->summary / 4) + n] = ((const nr_u32 *)summary)[n];
	}
	for (nr_u32 i = 0; by.d->take && i < NR_DETECT_MAX; i++)
		by.d->take(&all, m->pairs, &m->scratch, i);
	for (nr_u32 i = 1; by.d->compare && i < NR_DETECT_MAX; i++)
		for (nr_u32 j = 0; j < i; j++)
			by.d->compare(by.own, m->pairs, i, j);
	by.d->group(by.own, &all, m->pairs, &m->scratch);
}

/*
 * Interval `number` is over: makes an observation and, if a decision is due, decides and returns 1.
 * Both arrays have NR_DETECT_MAX places.
 */
int narrows_many_close(struct nr_many *m, nr_u64 number, nr_u8 *observed, nr_u8 *decided)
{
	struct nr_pace pace = one(m).d->pace(one(m).own, &m->params.decision);
	/* A sample without a delay at the start of the next interval closes this one. */
	const struct nr_sample nothing = {.now_us = (number + 1) * pace.t_us};
	nr_u32 stamp = (nr_u32)number + 1;

	m->scratch.stamp = stamp;
	m->scratch.present = 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		m->scratch.present |= (nr_u64)(narrows_many_sample(m, i, &nothing) == stamp) << i;
	observe(m);
	m->ring.of[stamp % NR_OBSERVATIONS] = nr_places(stamp, m->scratch.place);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		observed[i] = m->scratch.place[i];
	if (stamp - m->decided < pace.every)
		return 0;
	m->decided = stamp;
	nr_filter(&pace, &m->params.decision, &m->ring, &m->scratch);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		decided[i] = m->scratch.place[i];
	return 1;
}

/* What is known of flows i and j; 0 if the detector keeps nothing of pairs. */
int narrows_many_pair(const struct nr_many *m, nr_u32 i, nr_u32 j, struct nr_pair *pair)
{
	const struct nr_detector *d = one(m).d;

	if (!d->pair)
		return 0;
	*pair = d->pair(m->pairs, i, j);
	return 1;
}
