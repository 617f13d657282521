/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection under a detector that listens: who writes what, and when it is decided.
 *
 * Time is cut into intervals of T, the same for all paths: k = now / T. A path closes its interval
 * at its first sample of a later one and publishes record k & 1. The first path that comes `settle`
 * after the end of interval k claims the decision on it: it reads the records of k, writes one
 * observation, and when a decision is due stores all masks at once. With settle = T that is the
 * first event of k + 2, when all that carried data in k + 1 have closed k; the record stays until
 * its path closes k + 2.
 */
#ifndef NARROWS_DETECT_WATCH_H
#define NARROWS_DETECT_WATCH_H

#include "../shared.h"
#include "ssc.h"
#include "tr.h"
#include "btlbw.h"

#define NR_HISTORY_WORDS 224 /* of 64 bits */

/* What a detector keeps of a path. The path's own, but for `since`. */
struct nr_listener {
	nr_u64 due_us; /* when it next looks whether a decision is to be claimed */
	struct nr_hearing hearing;
	nr_u32 here;  /* 1: there is a path in this slot */
	nr_u32 since; /* stamp of the interval before the path came; read by its siblings */
	union {
		nr_u64 room[NR_HISTORY_WORDS];
		struct nr_ssc ssc;
		struct nr_tr tr;
		struct nr_btlbw btlbw;
	};
};
NR_STATIC_ASSERT(sizeof(struct nr_listener) == 8 * (NR_HISTORY_WORDS + 3), "histories fit");

/* What a listening detector keeps of a connection. All zero, but for params, before a path joins.
 */
struct nr_watch {
	struct nr_params params;
	nr_u64 observed_us; /* when the newest observation was made */
	nr_u64 decided_us;  /* when the newest decision was made */
	struct nr_places observed;
	struct nr_places decided;
	struct nr_places ring[NR_OBSERVATIONS];
	struct nr_listener path[NR_MAX_PATHS];
};

NR_INLINE void nr_record_write(struct nr_record *r, nr_u32 stamp, const nr_u32 *word, nr_u32 words)
{
	NR_WRITE(r->stamp, 0);
	NR_WRITE_BARRIER();
	for (nr_u32 n = 0; n < words; n++)
		NR_WRITE(r->word[n], word[n]);
	NR_WRITE_BARRIER();
	NR_WRITE(r->stamp, stamp);
}

/* Was record `stamp` there, whole? */
NR_INLINE int nr_record_read(const struct nr_record *r, nr_u32 stamp, nr_u32 *word, nr_u32 words)
{
	if (NR_READ(r->stamp) != stamp)
		return 0;
	NR_READ_BARRIER();
	for (nr_u32 n = 0; n < words; n++)
		word[n] = NR_READ(r->word[n]);
	NR_READ_BARRIER();
	return NR_READ(r->stamp) == stamp;
}

/* Observe interval `stamp` - 1: read what the paths published of it, and place them. */
#define NR_OBSERVE(name)                                                                           \
	NR_STATIC_ASSERT(sizeof(struct nr_##name##_summary) <= 28,                                 \
			 "a summary fits into a record");                                          \
	NR_INLINE void nr_##name##_observe(const struct nr_conn *c, const struct nr_params *p,     \
					   nr_u32 stamp, nr_u8 *place)                             \
	{                                                                                          \
		struct nr_##name##_summary of[NR_DETECT_MAX];                                      \
		nr_u64 present = 0;                                                                \
                                                                                                   \
		for (nr_u32 i = 0; i < NR_MAX_PATHS; i++)                                          \
			present |= (nr_u64)nr_record_read(&c->record[i][(stamp - 1) & 1], stamp,   \
							  (nr_u32 *)&of[i], sizeof(of[i]) / 4)     \
				   << i;                                                           \
		nr_##name##_group(&p->name, of, present, place);                                   \
	}
NR_OBSERVE(ssc)
NR_OBSERVE(tr)
NR_OBSERVE(btlbw)

/* A path's sample goes into its history; what an interval came to is published. */
NR_INLINE void nr_hear(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
		       const struct nr_sample *s)
{
	struct nr_listener *l = &w->path[i & 7];
	const struct nr_params *p = &w->params;
	nr_u32 stamp;

	switch (detector) {
	case NR_SSC:
		stamp = nr_ssc_sample(&p->ssc, &l->ssc, s);
		if (stamp)
			nr_record_write(&c->record[i & 7][(stamp - 1) & 1], stamp,
					(const nr_u32 *)&l->ssc.summary,
					sizeof(l->ssc.summary) / 4);
		break;
	case NR_TR:
		stamp = nr_tr_sample(&p->tr, &l->tr, s);
		if (stamp)
			nr_record_write(&c->record[i & 7][(stamp - 1) & 1], stamp,
					(const nr_u32 *)&l->tr.summary, sizeof(l->tr.summary) / 4);
		break;
	default:
		stamp = nr_btlbw_sample(&p->btlbw, &l->btlbw, s);
		if (stamp)
			nr_record_write(&c->record[i & 7][(stamp - 1) & 1], stamp,
					(const nr_u32 *)&l->btlbw.summary,
					sizeof(l->btlbw.summary) / 4);
		break;
	}
}

/*
 * The claimer of interval `stamp` - 1 observes it, and decides if it is time. A join meanwhile
 * keeps the masks from being stored; then the next interval decides.
 */
NR_NOINLINE int nr_decide(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 stamp,
			  nr_u64 now_us)
{
	nr_u8 place[NR_DETECT_MAX];
	nr_u32 since[NR_DETECT_MAX];
	struct nr_filter filter;
	struct nr_places seen;
	nr_u64 masks;

	if (!c || !w)
		return 0;
	masks = NR_READ(c->masks);
	if (detector == NR_SSC)
		nr_ssc_observe(c, &w->params, stamp, place);
	else if (detector == NR_TR)
		nr_tr_observe(c, &w->params, stamp, place);
	else
		nr_btlbw_observe(c, &w->params, stamp, place);
	seen = nr_places(stamp, place);
	NR_WRITE(w->ring[stamp % NR_OBSERVATIONS].word, seen.word);
	NR_WRITE(w->observed_us, now_us);
	NR_WRITE(w->observed.word, seen.word);
	filter = nr_pace(detector, &w->params).filter;
	if (w->decided.word && stamp - nr_stamp(&w->decided) < filter.every)
		return 0;
	for (nr_u32 i = 0; i < NR_MAX_PATHS; i++)
		since[i] = NR_READ(w->path[i].since);
	nr_filter(&filter, w->ring, since, stamp, place);
	if (!nr_masks_store(c, masks, nr_decided_masks(&w->params.decision, place)))
		return 0;
	NR_WRITE(w->decided_us, now_us);
	NR_WRITE(w->decided.word, nr_places(stamp, place).word);
	return 1;
}

/* The path comes to the time when a decision may be due. */
NR_INLINE void nr_tick(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
		       nr_u64 now_us)
{
	struct nr_pace pace = nr_pace(detector, &w->params);
	nr_u64 ended;

	if (now_us < pace.settle_us)
		return;
	ended = (now_us - pace.settle_us) / pace.t_us; /* intervals that are over and settled */
	w->path[i & 7].due_us = (ended + 1) * pace.t_us + pace.settle_us;
	if (ended && nr_tick_claim(c, ended))
		nr_decide(detector, c, w, (nr_u32)ended, now_us);
}

/* A path that has just come, or whose clock was set back: nothing is known of it. */
NR_INLINE void nr_listen(nr_u32 detector, const struct nr_params *p, struct nr_listener *l,
			 nr_u64 now_us)
{
	l->here = 1;
	l->due_us = 0;
	l->hearing.acked_us = now_us;
	NR_WRITE(l->since, (nr_u32)(now_us / nr_pace(detector, p).t_us));
	if (detector == NR_SSC)
		nr_ssc_reset(&l->ssc);
	else if (detector == NR_TR)
		nr_tr_reset(&l->tr);
	else
		nr_btlbw_reset(&l->btlbw);
}

/* Was the clock set back? */
NR_INLINE int nr_is_back(nr_u32 detector, const struct nr_params *p, const struct nr_listener *l,
			 nr_u64 now_us)
{
	struct nr_pace pace = nr_pace(detector, p);

	return now_us + 2ull * pace.t_us + pace.settle_us < l->due_us;
}

NR_INLINE void nr_watch_join(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
			     nr_u64 now_us)
{
	nr_u32 alone = 1u << (i & 7);

	nr_listen(detector, &w->params, &w->path[i & 7], now_us);
	nr_masks_join(c, i, w->params.decision.undecided == NR_COUPLE_NONE ? alone : 0xff);
}

NR_NOINLINE int nr_watch_event(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
			       const struct nr_event *ev)
{
	struct nr_listener *l;
	struct nr_sample s;

	if (!c || !w || !ev)
		return 0;
	l = &w->path[i & 7];
	if (ev->kind == NR_JOINED || ev->kind == NR_LEFT) {
		NR_WRITE(c->record[i & 7][0].stamp, 0);
		NR_WRITE(c->record[i & 7][1].stamp, 0);
	}
	if (ev->kind == NR_JOINED)
		nr_watch_join(detector, c, w, i, ev->now_us);
	if (ev->kind == NR_LEFT)
		l->here = 0;
	if (!l->here)
		return 0;
	if (NR_UNLIKELY(nr_is_back(detector, &w->params, l, ev->now_us)))
		nr_listen(detector, &w->params, l, ev->now_us);
	s = nr_sample(&l->hearing, ev);
	s.bw = NR_READ(c->path[i & 7].bw);
	nr_hear(detector, c, w, i, &s);
	if (s.now_us >= l->due_us)
		nr_tick(detector, c, w, i, s.now_us);
	return 1;
}

#endif
