/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared code of all window laws: handles the events of a path and turns credit into window. The
 * law (its table is nr_this) provides the growth per acknowledged packet, the threshold after a
 * congestion event, and its state; missing hooks are Reno's.
 */
#ifndef NARROWS_WINDOW_H
#define NARROWS_WINDOW_H

#include "flows.h"
#include "law.h"
#include "laws/reno.h"
#include "model.h"

/* Maximum computations of credit per event: CUBIC's regions need 5. */
#define NR_GROW_STEPS 5
/* Maximum packets counted per event: credit times this fits in 63 bits. */
#define NR_ACKED_MAX (1u << 20)

/*
 * Growth per acknowledged packet at the current window, Q40 packets; the law lowers *n if the
 * growth holds for fewer packets. A coupled law alone in its mask is Reno, unless `alone` is set.
 */
NR_INLINE nr_s64 nr_new_credit(NR_HOOK, nr_u32 *n)
{
	nr_u32 set = nr_this.couples ? nr_coupled(c, i) : 0;

	if (!nr_this.credit || (nr_this.couples && !nr_this.alone && set == 1u << (i & 7)))
		return (nr_s64)nr_reno_credit(p->cwnd);
	return nr_this.credit(NR_ARGS, set, n);
}

/* The same, kept for up to a round trip if the law permits: most acknowledgements change nothing.
 */
NR_INLINE nr_s64 nr_credit(NR_HOOK, nr_u32 *n)
{
	struct nr_kept *kept = (struct nr_kept *)&p->law[NR_LAW_WORDS - NR_KEPT_WORDS];
	nr_u32 mask, rtt_us;

	if (!nr_this.per_round)
		return nr_new_credit(NR_ARGS, n);
	mask = nr_mask(c, i) | nr_cut_mask(c, i) << 8;
	rtt_us = NR_READ(c->path[i & 7].srtt8_us) / 8;
	if (kept->cwnd != p->cwnd || kept->mask != mask || ev->now_us - kept->us >= rtt_us) {
		kept->credit = nr_new_credit(NR_ARGS, n);
		kept->us = ev->now_us;
		kept->cwnd = p->cwnd;
		kept->mask = mask;
	}
	return kept->credit;
}

/* Credit is above the need where a group has just become one. */
NR_INLINE nr_u64 nr_room(nr_s64 need, nr_s64 credit)
{
	return need > credit ? (nr_u64)(need - credit) : 0;
}

/*
 * Congestion avoidance over `acked` packets. Credit is constant between two whole packets of
 * window, so that a stretch acknowledgement has the same effect as one acknowledgement per packet:
 * go to the crossing, grow, compute the credit again. After NR_GROW_STEPS steps the last credit is
 * used for the rest.
 */
NR_INLINE void nr_grow(NR_HOOK, nr_u32 acked)
{
	nr_s64 one = (nr_s64)NR_ONE, credit = 0;
	nr_u32 pairs = nr_this.pairs && nr_cut_together(c, i) != 1u << (i & 7);

	if (nr_this.begin)
		nr_this.begin(NR_ARGS);
	for (nr_u32 step = 0; acked && step < NR_GROW_STEPS; step++) {
		nr_u32 n = acked, cwnd;
		nr_u64 per, room;

		NR_FORGET();
		cwnd = p->cwnd;
		credit = nr_credit(NR_ARGS, &n);
		if (n > acked)
			n = acked;
		per = (nr_u64)(credit < 0 ? -credit : credit);
		if (credit < 0)
			room = (nr_u64)(one + p->credit);
		else
			room = nr_room(pairs ? nr_pair_need(cwnd) : one, p->credit);
		if (per * n > room)
			n = room ? (nr_u32)((room + per - 1) / per) : 1;
		p->credit += credit * n;
		acked -= n;
		if (nr_this.grown)
			nr_this.grown(NR_ARGS, cwnd, n);
		if (pairs)
			nr_settle_pairs(c, i, p);
		else
			nr_settle(c, i, p);
		/*
		 * Reno: w credits of 1/w, rounded up, make one packet; the rest is rounding. A law
		 * with `grown` keeps the rest.
		 */
		if (!nr_this.grown && !pairs && p->cwnd > cwnd && p->credit < cwnd)
			p->credit = 0;
	}
	if (acked) {
		if (nr_this.grown)
			nr_this.grown(NR_ARGS, p->cwnd, acked);
		p->credit += credit * acked;
		if (pairs)
			nr_settle_pairs(c, i, p);
		else
			nr_settle(c, i, p);
	}
}

NR_INLINE const struct nr_window_params *nr_window_params(const struct nr_conn *c)
{
	return (const struct nr_window_params *)c->window;
}

/* The window where slow start ends. */
NR_INLINE nr_u32 nr_slow_start_end(const struct nr_conn *c, const struct nr_private *p)
{
	return p->ssthresh + nr_window_params(c)->at_ssthresh;
}

/* Slow start: a packet for each acknowledged one, up to its end; returns the packets left over. */
NR_INLINE nr_u32 nr_slow_start(struct nr_conn *c, nr_u32 i, struct nr_private *p, nr_u32 acked)
{
	nr_u32 grow = nr_slow_start_end(c, p) - p->cwnd;

	if (grow > acked)
		grow = acked;
	nr_set_cwnd(c, i, p, p->cwnd + grow);
	return acked - grow;
}

/* One reduction per congestion event, for any number of lost packets, and if a timeout follows. */
NR_INLINE void nr_reduce(NR_HOOK)
{
	p->skip = 0; /* packets in flight are lost, or drained by recovery */
	if (p->reduced)
		return;
	p->reduced = 1;
	p->prior_cwnd = p->cwnd;
	p->prior_ssthresh = p->ssthresh;
	nr_set_ssthresh(c, i, p,
			nr_this.ssthresh ? nr_this.ssthresh(NR_ARGS) : nr_reno_ssthresh(p->cwnd));
	p->credit = 0;
	if (nr_this.lost)
		nr_this.lost(NR_ARGS);
}

/* The reduction was spurious: restore the old values if they are larger (RFC 4015). */
NR_INLINE void nr_undo(NR_HOOK)
{
	if (!p->prior_cwnd)
		return;
	if (p->cwnd < p->prior_cwnd)
		nr_set_cwnd(c, i, p, p->prior_cwnd);
	if (p->ssthresh < p->prior_ssthresh)
		nr_set_ssthresh(c, i, p, p->prior_ssthresh);
	if (nr_this.undo)
		nr_this.undo(NR_ARGS);
	p->prior_cwnd = 0;
	p->reduced = 0;
}

/* RFC 2861: ssthresh remembers three quarters of the window before idle. */
NR_INLINE void nr_restart(NR_HOOK)
{
	nr_u32 memory = p->cwnd - p->cwnd / 4, cwnd = ev->cwnd ? ev->cwnd : NR_INIT_CWND;

	if (cwnd >= p->cwnd)
		return;
	if (p->ssthresh < memory)
		nr_set_ssthresh(c, i, p, memory);
	nr_set_cwnd(c, i, p, cwnd);
	p->credit = 0;
	if (nr_this.restart)
		nr_this.restart(NR_ARGS);
}

NR_INLINE void nr_joined(nr_u32 start, NR_HOOK)
{
	struct nr_path *line = &c->path[i & 7];

	nr_clear(c, i);
	nr_debit_drop(c, i);
	*p = (struct nr_private){0};
	NR_WRITE(line->generation, line->generation + 1);
	nr_set_ssthresh(c, i, p, ev->ssthresh ? ev->ssthresh : NR_SSTHRESH_MAX);
	nr_set_cwnd(c, i, p, nr_start_initial(start, NR_ARGS));
	if (nr_this.joined)
		nr_this.joined(NR_ARGS);
}

NR_INLINE void nr_acked(nr_u32 start, NR_HOOK)
{
	nr_u32 acked = ev->delivered < NR_ACKED_MAX ? ev->delivered : NR_ACKED_MAX, counts;

	if (nr_this.acked)
		nr_this.acked(NR_ARGS);
	if (ev->flags & NR_F_IN_RECOVERY)
		return;
	if (acked)
		p->reduced = 0;
	if (nr_start_acked(start, NR_ARGS))
		nr_set_ssthresh(c, i, p, p->cwnd);
	if (p->skip) {
		nr_u32 skip = p->skip < acked ? p->skip : acked;

		p->skip -= skip;
		acked -= skip;
	}
	if (!(ev->flags & NR_F_CWND_LIMITED))
		return;
	if (nr_start_grows(start) && nr_first_slow_start(p)) {
		p->credit += nr_start_credit(start, NR_ARGS, acked);
		nr_settle(c, i, p);
		return;
	}
	/* An acknowledgement that counts is slow start's or congestion avoidance's, not both. */
	counts = acked && nr_window_params(c)->count_acks && !nr_this.by_time;
	if (p->cwnd < nr_slow_start_end(c, p)) {
		acked = nr_slow_start(c, i, p, acked);
		if (counts)
			return;
	}
	if (acked)
		nr_grow(NR_ARGS, counts ? 1 : acked);
}

/* Does this event report windows of the host that recovery or restart has not yet changed? */
NR_INLINE int nr_has_windows(const struct nr_private *p, const struct nr_event *ev)
{
	switch (ev->kind) {
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
 * Outside recovery the host's windows prevail: it may have clamped the window, or remembered a
 * threshold while the application was slow (RFC 2861); and a reduction starts from them. Then the
 * debit of siblings is subtracted; as long as more packets are in flight than the rest,
 * acknowledgements do not grow the window (LISA: ACKs to ignore).
 */
NR_INLINE void nr_adopt(NR_HOOK)
{
	nr_u32 before, inflight = ev->inflight + ev->delivered;

	if (nr_has_windows(p, ev)) {
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

/* The host has converted the windows that it gives. */
NR_INLINE void nr_window_resized(NR_HOOK, nr_u32 before)
{
	if (p->prior_cwnd)
		p->prior_cwnd = (nr_u32)nr_resized(p->prior_cwnd, before, ev->mss);
	if (p->prior_ssthresh < NR_SSTHRESH_MAX)
		p->prior_ssthresh = (nr_u32)nr_resized(p->prior_ssthresh, before, ev->mss);
	if (nr_this.resized)
		nr_this.resized(NR_ARGS, before);
}

NR_INLINE void nr_window_event(nr_u32 start, NR_HOOK)
{
	nr_u32 mss = c->path[i & 7].mss;

	if (ev->kind == NR_LEFT) {
		nr_clear(c, i);
		*p = (struct nr_private){0};
		return;
	}
	if (ev->kind == NR_JOINED)
		nr_joined(start, NR_ARGS);
	if (!p->cwnd) /* no path: Linux calls some hooks before init and after release */
		return;
	if (ev->flags & NR_F_RESIZED && mss && ev->mss && ev->mss != mss)
		nr_window_resized(NR_ARGS, mss);
	nr_publish(&c->path[i & 7], ev);
	nr_adopt(NR_ARGS);
	if (nr_this.before)
		nr_this.before(NR_ARGS);
	switch (ev->kind) {
	case NR_ACKED:
		nr_acked(start, NR_ARGS);
		break;
	case NR_RECOVERY:
	case NR_ECN:
		nr_reduce(NR_ARGS);
		nr_set_cwnd(c, i, p, p->ssthresh < p->cwnd ? p->ssthresh : p->cwnd);
		break;
	case NR_RECOVERED:
		p->reduced = 0;
		p->skip = 0;
		break;
	case NR_TIMEOUT:
		p->skip = 0;
		if (!(ev->flags &
		      NR_F_RETRANS)) /* RFC 5681, section 3.1: repeated, keep ssthresh */
			nr_reduce(NR_ARGS);
		if (nr_this.timeout)
			nr_this.timeout(NR_ARGS);
		nr_start_timeout(start, NR_ARGS);
		nr_set_cwnd(c, i, p, 1);
		break;
	case NR_UNDO:
		nr_undo(NR_ARGS);
		break;
	case NR_RESTART:
		nr_restart(NR_ARGS);
		break;
	default:
		break;
	}
}

/* Handles an event of a path under the law of this translation unit. */
NR_INLINE void nr_law_event(nr_u32 start, NR_HOOK)
{
	if (nr_this.kind == NR_MODEL)
		nr_model_event(NR_ARGS);
	else
		nr_window_event(start, NR_ARGS);
}

#endif
