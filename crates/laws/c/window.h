/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all window laws share: the events of a path, and how credit becomes window. A law gives the
 * growth per acknowledged packet, the threshold after a loss, and what it must remember.
 */
#ifndef NARROWS_WINDOW_H
#define NARROWS_WINDOW_H

#include "shared.h"
#include "flows.h"
#include "laws/reno.h"
#include "laws/cubic.h"
#include "laws/lia.h"
#include "laws/olia.h"
#include "laws/balia.h"
#include "start/standard.h"
#include "start/hystart.h"
#include "start/hystartpp.h"

/* Times an event works its credit out anew: CUBIC's regions need 5. */
#define NR_GROW_STEPS 5
/* Packets of one event that count: credit * this fits in 63 bits. */
#define NR_ACKED_MAX (1u << 20)

/* What a path keeps for itself. All zero before the join. */
struct nr_private {
	nr_s64 credit;	       /* Q40 packets, in (-1, 1) between events */
	nr_u32 cwnd;	       /* packets */
	nr_u32 ssthresh;       /* packets */
	nr_u32 prior_cwnd;     /* before the last reduction; 0: nothing to undo */
	nr_u32 prior_ssthresh; /* likewise */
	nr_u32 reduced;	       /* a reduction was made and its recovery is not over */
	nr_u32 skip;	       /* packets whose acknowledgement does not grow the window */
	union {
		struct nr_hystart hystart; /* CUBIC's, unless another was asked for */
		struct nr_hystartpp hystartpp;
	};
	union {
		struct nr_cubic cubic;
		struct nr_olia olia;
	};
};

/*
 * Growth per acknowledged packet at the present window, Q40 packets; *n is lowered where the law
 * knows that it holds for fewer packets than that. A coupled law alone in its mask is Reno.
 */
NR_INLINE nr_s64 nr_credit(nr_u32 law, const struct nr_conn *c, nr_u32 i,
			   const struct nr_private *p, nr_u64 now_us, nr_u32 *n)
{
	nr_u32 set;

	if (law == NR_CUBIC)
		return (nr_s64)nr_cubic_credit(&p->cubic, p->cwnd,
					       p->cwnd * NR_CUBIC_ONE + ((nr_u64)p->credit >> 8),
					       now_us, c->path[i & 7].srtt8_us / 8, n);
	if (law == NR_RENO)
		return (nr_s64)nr_reno_credit(p->cwnd);
	set = nr_coupled(c, i);
	if (set == 1u << (i & 7))
		return (nr_s64)nr_reno_credit(p->cwnd);
	switch (law) {
	case NR_LIA:
		return (nr_s64)nr_lia_credit(c, i, set);
	case NR_OLIA:
		return nr_olia_credit(c, i, set);
	default:
		return (nr_s64)nr_balia_credit(c, i, set);
	}
}

/* The window after a loss, packets. */
NR_INLINE nr_u32 nr_reduced_ssthresh(nr_u32 law, const struct nr_conn *c, nr_u32 i,
				     const struct nr_private *p)
{
	switch (law) {
	case NR_CUBIC:
		return nr_cubic_ssthresh(p->cwnd);
	case NR_OLIA:
		return nr_olia_ssthresh(c, i, p->cwnd);
	case NR_BALIA:
		return nr_balia_ssthresh(c, i, nr_coupled(c, i));
	default:
		return nr_reno_ssthresh(p->cwnd);
	}
}

/* Publish a new window: the law's next credit, and the siblings', are worked out from it. */
NR_INLINE void nr_set_cwnd(struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 cwnd)
{
	if (cwnd < 1)
		cwnd = 1;
	if (cwnd > NR_CWND_MAX)
		cwnd = NR_CWND_MAX;
	p->cwnd = cwnd;
	NR_WRITE(c->path[i & 7].cwnd, cwnd);
}

NR_INLINE void nr_set_ssthresh(struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 ssthresh)
{
	if (ssthresh > NR_SSTHRESH_MAX)
		ssthresh = NR_SSTHRESH_MAX;
	p->ssthresh = ssthresh;
	NR_WRITE(c->path[i & 7].ssthresh, ssthresh);
}

/* Turn whole packets of credit into window. */
NR_INLINE void nr_settle(struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	nr_s64 one = (nr_s64)NR_ONE;

	if (p->credit >= one) {
		nr_set_cwnd(c, i, p, p->cwnd + (nr_u32)(p->credit >> NR_CREDIT_BITS));
		p->credit &= one - 1;
	} else if (p->credit <= -one) {
		nr_u32 fall = (nr_u32)(-p->credit >> NR_CREDIT_BITS);

		nr_set_cwnd(c, i, p, p->cwnd > fall ? p->cwnd - fall : 1);
		p->credit = -(-p->credit & (one - 1));
	}
}

/*
 * Congestion avoidance over `acked` packets. The credit of a packet holds between two whole packets
 * of window, so that a stretch acknowledgement is worth the same packets one by one: go to the
 * crossing, grow, work the credit out anew. After NR_GROW_STEPS steps the rest goes at the last.
 */
NR_INLINE void nr_grow(nr_u32 law, struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u64 now_us,
		       nr_u32 acked)
{
	nr_s64 one = (nr_s64)NR_ONE, credit = 0;

	if (law == NR_CUBIC)
		nr_cubic_begin(&p->cubic, p->cwnd, now_us);
	for (nr_u32 step = 0; acked && step < NR_GROW_STEPS; step++) {
		nr_u32 n = acked, cwnd;
		nr_u64 per, room;

		NR_FORGET();
		cwnd = p->cwnd;
		credit = nr_credit(law, c, i, p, now_us, &n);
		per = (nr_u64)(credit < 0 ? -credit : credit);
		room = (nr_u64)(credit < 0 ? one + p->credit : one - p->credit);
		if (per * n > room)
			n = (nr_u32)((room + per - 1) / per);
		p->credit += credit * n;
		acked -= n;
		if (law == NR_CUBIC)
			nr_cubic_grown(&p->cubic, cwnd, n);
		nr_settle(c, i, p);
		/* Reno: w credits of 1/w, rounded up, make one packet; the rest is rounding. */
		if (law != NR_CUBIC && p->cwnd > cwnd && p->credit < cwnd)
			p->credit = 0;
	}
	if (acked) {
		if (law == NR_CUBIC)
			nr_cubic_grown(&p->cubic, p->cwnd, acked);
		p->credit += credit * acked;
		nr_settle(c, i, p);
	}
}

/*
 * Is a window that equals ssthresh in slow start? RFC 5681, section 3.1, leaves it open. 0 as in
 * Linux since 4.3; 1 as before, for what was measured on older kernels.
 */
#ifndef NR_SLOW_START_AT_SSTHRESH
#define NR_SLOW_START_AT_SSTHRESH 0
#endif

/* The window where slow start ends. */
NR_INLINE nr_u32 nr_slow_start_end(const struct nr_private *p)
{
	return p->ssthresh + NR_SLOW_START_AT_SSTHRESH;
}

/* Slow start: a packet for each acknowledged one, up to its end; returns the packets left over. */
NR_INLINE nr_u32 nr_slow_start(struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 acked)
{
	nr_u32 grow = nr_slow_start_end(p) - p->cwnd;

	if (grow > acked)
		grow = acked;
	nr_set_cwnd(c, i, p, p->cwnd + grow);
	return acked - grow;
}

/* Is this the first slow start, which knows no ssthresh? */
NR_INLINE int nr_first_slow_start(const struct nr_private *p)
{
	return p->ssthresh == NR_SSTHRESH_MAX;
}

/* Should slow start end here, before a loss? */
NR_INLINE void nr_look_ahead(nr_u32 law, nr_u32 start, struct nr_conn *c, nr_u32 i,
			     struct nr_private *p, const struct nr_event *ev)
{
	int end = 0;

	if (start == NR_HYSTARTPP) {
		if (nr_first_slow_start(p))
			end = nr_hystartpp_acked(&p->hystartpp, ev);
	} else if (law == NR_CUBIC) {
		end = nr_hystart_acked(&p->hystart, p->cwnd, p->cwnd < p->ssthresh, ev);
	}
	if (end)
		nr_set_ssthresh(c, i, p, p->cwnd);
}

/* One reduction for each loss event, however many packets it took and though the timer follows. */
NR_INLINE void nr_reduce(nr_u32 law, struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	p->skip = 0; /* what was in flight is lost, or drained by recovery */
	if (p->reduced)
		return;
	p->reduced = 1;
	p->prior_cwnd = p->cwnd;
	p->prior_ssthresh = p->ssthresh;
	nr_set_ssthresh(c, i, p, nr_reduced_ssthresh(law, c, i, p));
	p->credit = 0;
	if (law == NR_OLIA)
		nr_olia_lost(&p->olia, &c->path[i & 7]);
	if (law == NR_CUBIC)
		nr_cubic_lost(&p->cubic, p->cwnd);
}

/* The reduction was for nothing: back to what was before it, where that was more (RFC 4015). */
NR_INLINE void nr_undo(nr_u32 law, struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	if (!p->prior_cwnd)
		return;
	if (p->cwnd < p->prior_cwnd)
		nr_set_cwnd(c, i, p, p->prior_cwnd);
	if (p->ssthresh < p->prior_ssthresh)
		nr_set_ssthresh(c, i, p, p->prior_ssthresh);
	if (law == NR_OLIA)
		nr_olia_undo(&p->olia, &c->path[i & 7]);
	if (law == NR_CUBIC)
		p->cubic.now = p->cubic.prior;
	p->prior_cwnd = 0;
	p->reduced = 0;
}

/* RFC 2861: ssthresh remembers three quarters of the window that idleness takes. */
NR_INLINE void nr_restart(nr_u32 law, struct nr_conn *c, nr_u32 i, struct nr_private *p,
			  nr_u32 cwnd)
{
	nr_u32 memory = p->cwnd - p->cwnd / 4;

	if (cwnd >= p->cwnd)
		return;
	if (p->ssthresh < memory)
		nr_set_ssthresh(c, i, p, memory);
	nr_set_cwnd(c, i, p, cwnd);
	p->credit = 0;
	if (law == NR_CUBIC)
		p->cubic.now.running = 0;
}

NR_INLINE nr_u32 nr_initial(nr_u32 start)
{
	(void)start; /* all there are begin so */
	return nr_standard_initial();
}

/*
 * Nothing of a path stays behind when it leaves, or comes: not in a sum, not as a detector's
 * sample. Its debit is settled, as the packets are in another window already.
 */
NR_INLINE void nr_clear(struct nr_conn *c, nr_u32 i)
{
	struct nr_path *line = &c->path[i & 7];

	NR_WRITE(line->state, NR_FREE);
	NR_WRITE(line->srtt8_us, 0);
	NR_WRITE(line->inflight, 0);
	NR_WRITE(line->pacing_rate, 0);
	NR_WRITE(line->bw, 0);
	NR_WRITE(line->advice, NR_ADVICE_NONE);
	NR_WRITE(line->word[0], 0);
	NR_WRITE(line->word[1], 0);
	NR_WRITE(c->record[i & 7][0].stamp, 0);
	NR_WRITE(c->record[i & 7][1].stamp, 0);
	nr_debit_apply(c, i, 1);
	NR_WRITE(line->cwnd, 0);
}

NR_INLINE void nr_joined(nr_u32 start, struct nr_conn *c, nr_u32 i, struct nr_private *p)
{
	struct nr_path *line = &c->path[i & 7];

	nr_clear(c, i);
	*p = (struct nr_private){0};
	NR_WRITE(line->generation, line->generation + 1);
	nr_set_ssthresh(c, i, p, NR_SSTHRESH_MAX);
	nr_set_cwnd(c, i, p, nr_initial(start));
}

NR_INLINE void nr_acked(nr_u32 law, nr_u32 start, struct nr_conn *c, nr_u32 i, struct nr_private *p,
			const struct nr_event *ev)
{
	nr_u32 acked = ev->delivered < NR_ACKED_MAX ? ev->delivered : NR_ACKED_MAX;

	if (law == NR_OLIA)
		nr_olia_acked(&p->olia, &c->path[i & 7], ev->delivered);
	if (law == NR_CUBIC)
		nr_cubic_acked(&p->cubic, ev->now_us, !!(ev->flags & NR_F_CWND_LIMITED));
	if (ev->flags & NR_F_IN_RECOVERY)
		return;
	if (acked)
		p->reduced = 0;
	nr_look_ahead(law, start, c, i, p, ev);
	if (p->skip) {
		nr_u32 skip = p->skip < acked ? p->skip : acked;

		p->skip -= skip;
		acked -= skip;
	}
	if (!(ev->flags & NR_F_CWND_LIMITED))
		return;
	if (start == NR_HYSTARTPP && nr_first_slow_start(p)) {
		p->credit += nr_hystartpp_credit(&p->hystartpp, acked, ev);
		nr_settle(c, i, p);
		return;
	}
	if (p->cwnd < nr_slow_start_end(p))
		acked = nr_slow_start(c, i, p, acked);
	if (acked)
		nr_grow(law, c, i, p, ev->now_us, acked);
}

/* Are the windows in this event the host's own, which recovery or restart has not yet moved? */
NR_INLINE int nr_tells_windows(const struct nr_private *p, const struct nr_event *ev)
{
	switch (ev->kind) {
	case NR_JOINED:
		return 1;
	case NR_ACKED:
		return !(ev->flags & NR_F_IN_RECOVERY);
	case NR_RECOVERY:
	case NR_ECN:
	case NR_TIMEOUT:
		return !p->reduced;
	default:
		return 0;
	}
}

/*
 * The host's windows are the truth outside recovery: it may have an initial window of its own, the
 * path may come from another law, it may have clamped what the law asked for, or have remembered a
 * threshold while the application was slow (RFC 2861); and a reduction starts from them.
 * Then what siblings took from it goes off, and while more is in flight than is left, packets that
 * come in make no room for growth (LISA: ACKs to ignore).
 */
NR_INLINE void nr_adopt(struct nr_conn *c, nr_u32 i, struct nr_private *p,
			const struct nr_event *ev)
{
	nr_u32 before, inflight = ev->inflight + ev->delivered;

	if (nr_tells_windows(p, ev)) {
		if (ev->cwnd && ev->cwnd < p->cwnd)
			p->credit = 0;
		if (ev->cwnd && ev->cwnd != p->cwnd)
			nr_set_cwnd(c, i, p, ev->cwnd);
		if (ev->ssthresh && ev->ssthresh != p->ssthresh)
			nr_set_ssthresh(c, i, p, ev->ssthresh);
	}
	before = p->cwnd;
	p->cwnd = nr_debit_apply(c, i, p->cwnd);
	if (p->cwnd < before && inflight > p->cwnd)
		p->skip = inflight - p->cwnd;
}

/* What siblings may know of the path as soon as the event is in. */
NR_INLINE void nr_publish(struct nr_path *line, const struct nr_event *ev)
{
	if (ev->srtt8_us)
		NR_WRITE(line->srtt8_us, ev->srtt8_us);
	if (ev->mss)
		NR_WRITE(line->mss, ev->mss);
	NR_WRITE(line->inflight, ev->inflight);
	NR_WRITE(line->seen_ms, (nr_u32)(ev->now_us / 1000));
	NR_WRITE(line->state, ev->state);
}

NR_INLINE void nr_window_event(nr_u32 law, nr_u32 start, struct nr_conn *c, nr_u32 i,
			       struct nr_private *p, const struct nr_event *ev)
{
	if (ev->kind == NR_LEFT) {
		nr_clear(c, i);
		*p = (struct nr_private){0};
		return;
	}
	if (ev->kind == NR_JOINED)
		nr_joined(start, c, i, p);
	if (!p->cwnd) /* no path here: Linux calls some hooks before init and after release */
		return;
	nr_publish(&c->path[i & 7], ev);
	nr_adopt(c, i, p, ev);
	switch (ev->kind) {
	case NR_ACKED:
		nr_acked(law, start, c, i, p, ev);
		break;
	case NR_RECOVERY:
	case NR_ECN:
		nr_reduce(law, c, i, p);
		nr_set_cwnd(c, i, p, p->ssthresh < p->cwnd ? p->ssthresh : p->cwnd);
		break;
	case NR_RECOVERED:
		p->reduced = 0;
		p->skip = 0;
		break;
	case NR_TIMEOUT:
		p->skip = 0;
		if (!(ev->flags & NR_F_RETRANS)) /* again: RFC 5681, section 3.1, holds ssthresh */
			nr_reduce(law, c, i, p);
		if (law == NR_CUBIC)
			nr_cubic_timeout(&p->cubic);
		if (law == NR_CUBIC && start == NR_STANDARD) /* another path may be there now */
			p->hystart = (struct nr_hystart){0};
		nr_set_cwnd(c, i, p, 1);
		break;
	case NR_UNDO:
		nr_undo(law, c, i, p);
		break;
	case NR_RESTART:
		nr_restart(law, c, i, p, ev->cwnd ? ev->cwnd : NR_INIT_CWND);
		break;
	default:
		break;
	}
}

#endif
