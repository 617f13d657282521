// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The detectors for flows of a capture: more members than a connection has paths, and intervals
 * that time closes, as everything is read in its order. For src/detect.rs.
 */
#define NR_DETECT_MAX 64
#include "detect/ssc.h"
#include "detect/tr.h"

struct nr_many {
	struct nr_params params;
	nr_u32 detector;
	nr_u32 decided; /* stamp of the newest decision */
	struct nr_ring ring;
	struct nr_desk desk;
	union {
		struct nr_ssc ssc;
		struct nr_tr tr;
	} flow[NR_DETECT_MAX];
};

nr_u64 narrows_many_size(void);
void narrows_many_init(struct nr_many *m, nr_u32 detector, const struct nr_params *params);
nr_u32 narrows_many_sample(struct nr_many *m, nr_u32 flow, const struct nr_sample *s);
int narrows_many_close(struct nr_many *m, nr_u64 number, nr_u8 *observed, nr_u8 *decided);

nr_u64 narrows_many_size(void)
{
	return sizeof(struct nr_many);
}

/* The memory is all zero. */
void narrows_many_init(struct nr_many *m, nr_u32 detector, const struct nr_params *params)
{
	m->params = *params;
	m->detector = detector;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++) {
		if (detector == NR_SSC)
			nr_ssc_reset(&m->flow[i].ssc);
		else
			nr_tr_reset(&m->flow[i].tr);
	}
}

/* A sample of a flow; returns the stamp of the interval that it closed, or 0. */
nr_u32 narrows_many_sample(struct nr_many *m, nr_u32 flow, const struct nr_sample *s)
{
	flow &= NR_DETECT_MAX - 1;
	if (m->detector == NR_SSC)
		return nr_ssc_sample(&m->params.ssc, &m->flow[flow].ssc, s);
	return nr_tr_sample(&m->params.tr, &m->flow[flow].tr, s);
}

static void observe(struct nr_many *m)
{
	union {
		struct nr_ssc_summary ssc[NR_DETECT_MAX];
		struct nr_tr_summary tr[NR_DETECT_MAX];
	} of;

	if (m->detector == NR_SSC) {
		for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
			of.ssc[i] = m->flow[i].ssc.summary;
		nr_ssc_group(&m->params.ssc, of.ssc, &m->desk);
	} else {
		for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
			of.tr[i] = m->flow[i].tr.summary;
		nr_tr_group(&m->params.tr, of.tr, &m->desk);
	}
}

/*
 * Interval `number` is over: observes it and, where a decision is due, decides and returns 1. Both
 * arrays have NR_DETECT_MAX places.
 */
int narrows_many_close(struct nr_many *m, nr_u64 number, nr_u8 *observed, nr_u8 *decided)
{
	struct nr_pace pace = nr_pace(m->detector, &m->params);
	/* Nothing heard at the first moment of the next interval closes this one. */
	const struct nr_sample nothing = {.now_us = (number + 1) * pace.t_us};
	nr_u32 stamp = (nr_u32)number + 1;

	m->desk.stamp = stamp;
	m->desk.present = 0;
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		m->desk.present |= (nr_u64)(narrows_many_sample(m, i, &nothing) == stamp) << i;
	observe(m);
	m->ring.of[stamp % NR_OBSERVATIONS] = nr_places(stamp, m->desk.place);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		observed[i] = m->desk.place[i];
	if (stamp - m->decided < pace.filter.every)
		return 0;
	m->decided = stamp;
	nr_filter(&pace.filter, &m->ring, &m->desk);
	for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
		decided[i] = m->desk.place[i];
	return 1;
}
