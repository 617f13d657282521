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

NR_STATIC_ASSERT(sizeof(struct nr_ssc_summary) <= sizeof(nr_u32[7]), "a record has 7 words");
NR_STATIC_ASSERT(sizeof(struct nr_tr_summary) <= sizeof(nr_u32[7]), "a record has 7 words");
NR_STATIC_ASSERT(sizeof(struct nr_btlbw_summary) <= sizeof(nr_u32[7]), "a record has 7 words");

/* What all paths told of an interval. */
union nr_summaries {
	struct nr_ssc_summary ssc[NR_DETECT_MAX];
	struct nr_tr_summary tr[NR_DETECT_MAX];
	struct nr_btlbw_summary btlbw[NR_DETECT_MAX];
	nr_u32 word[7 * NR_DETECT_MAX]; /* so that its size is no detector's */
};

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
	/*
	 * Where the path works when it decides for the connection. Its own, as another path may
	 * still be at the decision before.
	 */
	union nr_summaries told;
	struct nr_desk desk;
};
NR_STATIC_ASSERT(sizeof(struct nr_listener) == 8 * (NR_HISTORY_WORDS + 4) +
						   sizeof(union nr_summaries) +
						   sizeof(struct nr_desk),
		 "histories fit");

/* What a listening detector keeps of a connection. All zero, but for params, before a path joins.
 */
struct nr_watch {
	struct nr_params params;
	nr_u64 observed_us; /* when the newest observation was made */
	nr_u64 decided_us;  /* when the newest decision was made */
	struct nr_places observed;
	struct nr_places decided;
	struct nr_ring ring;
	struct nr_listener path[NR_MAX_PATHS];
};

/* Whom paths ask to be coupled with. TR couples what it has found alike, and nobody else. */
NR_INLINE struct nr_decision_params nr_couples(nr_u32 detector, const struct nr_params *p)
{
	struct nr_decision_params couples = p->decision;

	if (detector == NR_TR) {
		couples.undecided = p->tr.undecided;
		couples.grouped = NR_COUPLE_NONE;
	}
	return couples;
}

/* How many words a path tells of an interval. */
NR_INLINE nr_u32 nr_summary_words(nr_u32 detector)
{
	switch (detector) {
	case NR_SSC:
		return sizeof(struct nr_ssc_summary) / 4;
	case NR_TR:
		return sizeof(struct nr_tr_summary) / 4;
	default:
		return sizeof(struct nr_btlbw_summary) / 4;
	}
}

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
NR_INLINE int nr_record_read(const struct nr_record *r, nr_u32 stamp, nr_u32 *word)
{
	if (NR_READ(r->stamp) != stamp)
		return 0;
	NR_READ_BARRIER();
	for (nr_u32 n = 0; n < 7; n++)
		word[n] = NR_READ(r->word[n]);
	NR_READ_BARRIER();
	return NR_READ(r->stamp) == stamp;
}

/*
 * Reads what path j published of interval d->stamp - 1: `words` words, to their place in `told`.
 * One step of a loop, in a function of its own for BPF's verifier.
 */
NR_NOINLINE int nr_told(const struct nr_conn *c, struct nr_desk *d, union nr_summaries *told,
			nr_u32 j, nr_u32 words)
{
	nr_u32 word[7];

	if (!c || !d || !told || words > 7)
		return 0;
	j %= NR_MAX_PATHS;
	if (!nr_record_read(&c->record[j][(d->stamp - 1) & 1], d->stamp, word))
		return 0;
	d->present |= 1ull << j;
	for (nr_u32 n = 0; n < 7; n++)
		if (n < words)
			told->word[(j * words + n) % (7 * NR_DETECT_MAX)] = word[n];
	return 1;
}

/* Places the paths by what they published of interval `stamp` - 1, and where they stood before. */
NR_NOINLINE int nr_observe(nr_u32 detector, const struct nr_conn *c, struct nr_watch *w, nr_u32 i,
			   nr_u32 stamp)
{
	const struct nr_params *p;
	union nr_summaries *told;
	struct nr_places last;
	struct nr_desk *d;

	if (!c || !w)
		return 0;
	p = &w->params;
	told = &w->path[i & 7].told;
	d = &w->path[i & 7].desk;
	d->stamp = stamp;
	d->present = 0;
	last.word = NR_READ(w->observed.word);
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++) {
		d->since[j] = NR_READ(w->path[j].since);
		d->place[j] = NR_UNDECIDED;
		if ((nr_s32)(nr_stamp(&last) - d->since[j]) > 0)
			d->place[j] = (nr_u8)nr_place(&last, j);
	}
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		nr_told(c, d, told, j, nr_summary_words(detector));
	switch (detector) {
	case NR_SSC:
		nr_ssc_group(&p->ssc, told->ssc, d);
		break;
	case NR_TR:
		nr_tr_group(&p->tr, told->tr, d);
		break;
	default:
		nr_btlbw_group(&p->btlbw, told->btlbw, d);
		break;
	}
	return 1;
}

/* A path's sample goes into its history; what an interval came to is published. */
NR_INLINE void nr_hear(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
		       const struct nr_sample *s)
{
	struct nr_listener *l = &w->path[i & 7];
	const struct nr_params *p = &w->params;
	const void *summary;
	nr_u32 stamp;

	switch (detector) {
	case NR_SSC:
		stamp = nr_ssc_sample(&p->ssc, &l->ssc, s);
		summary = &l->ssc.summary;
		break;
	case NR_TR:
		stamp = nr_tr_sample(&p->tr, &l->tr, s);
		summary = &l->tr.summary;
		break;
	default:
		stamp = nr_btlbw_sample(&p->btlbw, &l->btlbw, s);
		summary = &l->btlbw.summary;
		break;
	}
	if (stamp)
		nr_record_write(&c->record[i & 7][(stamp - 1) & 1], stamp, summary,
				nr_summary_words(detector));
}

/*
 * Decides on the observations up to the one that path i has just made. A join meanwhile keeps the
 * masks from being stored; then the next interval decides.
 */
NR_NOINLINE int nr_decide(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i)
{
	struct nr_decision_params couples;
	struct nr_filter filter;
	struct nr_desk *d;
	nr_u64 masks;

	if (!c || !w)
		return 0;
	filter = nr_pace(detector, &w->params).filter;
	couples = nr_couples(detector, &w->params);
	d = &w->path[i & 7].desk;
	masks = NR_READ(c->masks);
	NR_READ_BARRIER(); /* a join that shows in the masks shows in `since` */
	for (nr_u32 j = 0; j < NR_MAX_PATHS; j++)
		d->since[j] = NR_READ(w->path[j].since);
	nr_filter(&filter, &w->ring, d);
	return nr_masks_store(c, masks, nr_decided_masks(&couples, d));
}

/* Path i has claimed interval `stamp` - 1: it observes it, and decides if it is time. */
NR_INLINE void nr_claimed(nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
			  nr_u32 stamp, nr_u64 now_us)
{
	struct nr_places last = {NR_READ(w->decided.word)}, observed;
	struct nr_desk *d = &w->path[i & 7].desk;

	nr_observe(detector, c, w, i, stamp);
	observed = nr_places(stamp, d->place);
	NR_WRITE(w->ring.of[stamp % NR_OBSERVATIONS].word, observed.word);
	NR_WRITE(w->observed_us, now_us);
	NR_WRITE(w->observed.word, observed.word);
	if (last.word && stamp - nr_stamp(&last) < nr_pace(detector, &w->params).filter.every)
		return;
	if (!nr_decide(detector, c, w, i))
		return;
	NR_WRITE(w->decided_us, now_us);
	NR_WRITE(w->decided.word, nr_places(stamp, d->place).word);
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
		nr_claimed(detector, c, w, i, (nr_u32)ended, now_us);
}

/* A path that has just come, or whose clock was set back: nothing is known of it. */
NR_INLINE void nr_listen(nr_u32 detector, const struct nr_params *p, struct nr_listener *l,
			 nr_u64 now_us)
{
	l->here = 1;
	l->due_us = 0;
	l->hearing = (struct nr_hearing){.acked_us = now_us};
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
	nr_masks_join(c, i,
		      nr_couples(detector, &w->params).undecided == NR_COUPLE_NONE ? alone : 0xff);
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
	if (NR_UNLIKELY(nr_is_back(detector, &w->params, l, ev->now_us))) {
		nr_listen(detector, &w->params, l, ev->now_us);
		nr_tick_back(c, ev->now_us / nr_pace(detector, &w->params).t_us);
	}
	s = nr_sample(&l->hearing, ev);
	s.bw = NR_READ(c->path[i & 7].bw);
	s.cycles = NR_READ(c->path[i & 7].word[0]);
	nr_hear(detector, c, w, i, &s);
	if (s.now_us >= l->due_us)
		nr_tick(detector, c, w, i, s.now_us);
	return 1;
}

#endif
