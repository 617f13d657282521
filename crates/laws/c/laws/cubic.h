/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CUBIC: the window is a cubic function of the time since the last loss, flat around the window at
 * that loss, and never below Reno's.
 *
 * Source: RFC 9438, sections 4.1 to 4.9 named below.
 *
 *   W_cubic(t) = C (t - K)^3 + W_max,  K = cbrt((W_max - cwnd_epoch) / C)               (4.2)
 *   target = W_cubic(t + rtt), in [w, 1.5 w]
 *   W_est += a / w each acknowledged packet, a = 3 (1 - b) / (1 + b), 1 once W_est is at the
 *     window of the last loss                                                           (4.3)
 *   each acknowledged packet:  w += (target - w) / w,  or w = W_est if W_cubic(t) < W_est
 *   loss: ssthresh = max(b w, 2);  W_max = w, or w (1 + b) / 2 if w < W_max              (4.6, 4.7)
 *   C = 0.4 packets/s^3, b = 0.7
 *
 * Units: windows in packets, W_max and W_est in 2^-32 packet; t and K in us.
 * Valid: w 1 .. 2^24, t up to 2^32 us.
 * Departures: b times the window, not the flight size, as in Linux; W_est above w is approached by
 * at most one packet per packet, and never lowers w; a restart after idle begins a new epoch with
 * the old W_max; slow start ends by HyStart as in Linux (start/hystart.h), or by HyStart++ (4.10)
 * if selected.
 */
#ifndef NARROWS_LAW_CUBIC_H
#define NARROWS_LAW_CUBIC_H

#include "../law.h"
#include "../nr_fx.h"

#define NR_CUBIC_ONE (1ull << 32)
#define NR_CUBIC_ALPHA (NR_CUBIC_ONE * 9 / 17) /* 3 (1 - 0.7) / (1 + 0.7) */

struct nr_cubic_epoch {
	/*
	 * Start of this congestion avoidance, plus the time that the application was the limit; 0:
	 * not begun.
	 */
	nr_u64 start_us;
	nr_u64 w_max; /* 2^-32 packet; 0: none, the epoch begins at its plateau */
	nr_u64 w_est; /* 2^-32 packet */
	nr_u32 k_us;
	nr_u32 w_prior; /* window of the last loss, 2^-8 packet */
};

struct nr_cubic {
	struct nr_cubic_epoch now;
	struct nr_cubic_epoch prior; /* before the last loss, for undo (4.9) */
	nr_u64 last_us : 63;	     /* last acknowledgement */
	nr_u64 idle : 1;	     /* nothing was in flight after it */
	/* Of one path of a flow with several, 2^-32; 0: of the flow itself (laws/gcubic.h). */
	nr_u32 share; /* of the flow's cubic */
	nr_u32 step;  /* its growth a round trip where the flow has one packet */
};
NR_LAW_STATE(cubic)

/*
 * K = cbrt((W_max - cwnd) / C) in us: 1 / C = 2.5 s^3/packet = 2.5e18 us^3/packet, which is
 * 0x8ac72304 * 2^30, rounded down (2^-32 of it). `below` is in 2^-32 packet, hence the -32.
 */
NR_NOINLINE nr_u32 nr_cubic_k(nr_u64 below, nr_u32 share)
{
	struct nr_fx per_c = {0x8ac72304u, 30 - 32};
	nr_u64 k;

	if (share)
		per_c = nr_fx_div(per_c, nr_fx_shift(nr_fx(share), -32));
	k = nr_fx_fixed(nr_fx_cbrt(nr_fx_mul(nr_fx(below), per_c)), 0);
	return k < ~0u ? (nr_u32)k : ~0u;
}

/* Congestion avoidance begins at window w, 2^-32 packet. */
NR_INLINE void nr_cubic_start(struct nr_cubic *cubic, nr_u64 now_us, nr_u64 w)
{
	struct nr_cubic_epoch *e = &cubic->now;

	e->start_us = now_us;
	e->w_est = w;
	e->k_us = 0;
	if (e->w_max > w)
		e->k_us = nr_cubic_k(e->w_max - w, cubic->share);
	else
		e->w_max = w;
}

/* Congestion avoidance begins or continues. */
NR_INLINE void nr_cubic_begin(NR_HOOK)
{
	if (!nr_cubic(p)->now.start_us)
		nr_cubic_start(nr_cubic(p), ev->now_us, p->cwnd * NR_CUBIC_ONE);
}

/*
 * C |t - K|^3, 2^-32 packet. C = 0.4 packets/s^3 = 0.4e-18 packets/us^3 = m * 2^-93 with
 * m = 0.4e-18 * 2^93 = 0xec1e4a7d, rounded down (2^-32 of it).
 */
NR_NOINLINE nr_u64 nr_cubic_rise(nr_u64 k_us, nr_u64 t_us, nr_u32 share)
{
	struct nr_fx d = nr_fx(t_us > k_us ? t_us - k_us : k_us - t_us);
	struct nr_fx c = {0xec1e4a7du, -93};

	if (share)
		c = nr_fx_mul(c, nr_fx_shift(nr_fx(share), -32));
	return nr_fx_fixed(nr_fx_mul(nr_fx_mul(d, d), nr_fx_mul(d, c)), 32);
}

/* W_cubic(t), 2^-32 packet. */
NR_NOINLINE nr_u64 nr_cubic_window(nr_u64 w_max, nr_u64 k_us, nr_u64 t_us, nr_u32 share)
{
	nr_u64 rise = nr_cubic_rise(k_us, t_us, share);
	nr_u64 most = NR_CWND_MAX * NR_CUBIC_ONE;

	if (t_us < k_us)
		return w_max > rise ? w_max - rise : 0;
	return w_max + rise < most ? w_max + rise : most;
}

/* Number of the next n packets, each raising W_est by `per`, that keep it within bound. */
NR_INLINE nr_u32 nr_cubic_within(nr_u64 w_est, nr_u64 per, nr_u64 bound, nr_u32 n)
{
	if (w_est + per * n <= bound)
		return n;
	return bound > w_est ? (nr_u32)((bound - w_est) / per) : 0;
}

NR_INLINE nr_u64 nr_cubic_plateau(const struct nr_cubic_epoch *e)
{
	return (nr_u64)e->w_prior << 24;
}

/* What W_est grows by for each acknowledged packet. */
NR_NOINLINE nr_u64 nr_cubic_est_credit(nr_u64 w_est, nr_u64 plateau, nr_u32 step, nr_u32 cwnd)
{
	nr_u64 a = w_est < plateau ? NR_CUBIC_ALPHA : NR_CUBIC_ONE;

	if (step)
		a = a * step / NR_CUBIC_ONE;
	return a > cwnd ? a / cwnd : 1;
}

/*
 * Growth per packet; *n is lowered to the packets that it holds for. `window` is cwnd with its
 * fraction and `from` what the cubic grows from, cwnd alone in RFC 9438; 2^-32 packet.
 */
NR_INLINE nr_u64 nr_cubic_credit(const struct nr_cubic *cubic, nr_u32 cwnd, nr_u64 window,
				 nr_u64 from, nr_u64 now_us, nr_u32 rtt_us, nr_u32 *n)
{
	const struct nr_cubic_epoch *e = &cubic->now;
	nr_u64 t = now_us - e->start_us, plateau = nr_cubic_plateau(e), gap;
	nr_u64 per = nr_cubic_est_credit(e->w_est, plateau, cubic->step, cwnd);
	nr_u64 w = cwnd * NR_CUBIC_ONE;
	nr_u32 within;

	if (e->w_est < plateau) { /* a changes at the plateau */
		within = nr_cubic_within(e->w_est, per, plateau - 1, *n);
		*n = within < *n ? within + 1 : *n;
	}
	within =
	    nr_cubic_within(e->w_est, per, nr_cubic_window(e->w_max, e->k_us, t, cubic->share), *n);
	if (within) {
		nr_u64 target = nr_cubic_window(e->w_max, e->k_us, t + rtt_us, cubic->share);

		*n = within;
		if (target <= from)
			return 0;
		gap = target - from < w / 2 ? target - from : w / 2;
		/* 2^-32 packet to 2^-40; from 2^55 on the shift would not fit before the division.
		 */
		return gap >> 55 ? gap / cwnd << 8 : (gap << 8) / cwnd;
	}
	/* Reno-friendly: up to W_est, then with it. */
	within = nr_cubic_within(e->w_est, per, window, *n);
	if (within) {
		*n = within;
		return 0;
	}
	gap = e->w_est + per - window;
	if (gap > NR_CUBIC_ONE) { /* far below: n packets together lead at most to W_est */
		gap = (gap + per * (*n - 1)) / *n;
		return (gap < NR_CUBIC_ONE ? gap : NR_CUBIC_ONE) << 8;
	}
	if (gap != per)
		*n = 1;
	return gap << 8;
}

NR_INLINE nr_s64 nr_cubic_growth(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	nr_u64 w = p->cwnd * NR_CUBIC_ONE;

	return (nr_s64)nr_cubic_credit(nr_cubic(p), p->cwnd, w + ((nr_u64)p->credit >> 8), w,
				       ev->now_us, c->path[i & 7].srtt8_us / 8, n);
}

/* n packets were acknowledged at window cwnd, in congestion avoidance. */
NR_INLINE void nr_cubic_count(struct nr_cubic *cubic, nr_u32 cwnd, nr_u32 n)
{
	struct nr_cubic_epoch *e = &cubic->now;

	e->w_est += nr_cubic_est_credit(e->w_est, nr_cubic_plateau(e), cubic->step, cwnd) * n;
	if (e->w_est > NR_CWND_MAX * NR_CUBIC_ONE)
		e->w_est = NR_CWND_MAX * NR_CUBIC_ONE;
}

NR_INLINE void nr_cubic_grown(NR_HOOK, nr_u32 cwnd, nr_u32 n)
{
	nr_cubic_count(nr_cubic(p), cwnd, n);
}

/* A path that its window limits has an acknowledgement each round trip, at most so much later. */
#define NR_CUBIC_DELAYED_US 40000

/*
 * Each acknowledgement. The clock stops while the application, not cwnd, is the limit (5.8), also
 * if what is sent after an idle time fills the window at once.
 */
NR_INLINE void nr_cubic_clock(struct nr_cubic *cubic, const struct nr_event *ev)
{
	nr_s64 since = ev->now_us - cubic->last_us, most = ev->srtt8_us / 8 + NR_CUBIC_DELAYED_US;
	int full = ev->flags & NR_F_CWND_LIMITED && !(cubic->idle && since > most);

	if (cubic->now.start_us && since > 0 && !full)
		cubic->now.start_us += since;
	cubic->last_us = ev->now_us;
	cubic->idle = !ev->inflight;
}

NR_INLINE void nr_cubic_acked(NR_HOOK)
{
	nr_cubic_clock(nr_cubic(p), ev);
}

NR_INLINE nr_u32 nr_cubic_prior(nr_u64 w)
{
	return w >> 24 < ~0u ? (nr_u32)(w >> 24) : ~0u;
}

/* The epoch ends by a loss at cwnd packets. */
NR_INLINE void nr_cubic_end(struct nr_cubic_epoch *e, nr_u32 cwnd)
{
	nr_u64 w = cwnd * NR_CUBIC_ONE;

	e->w_max = w < e->w_max ? w / 20 * 17 : w; /* (1 + 0.7) / 2 = 17/20 */
	e->w_prior = nr_cubic_prior(w);
	e->start_us = 0;
}

/* p->cwnd is the window before the loss. */
NR_INLINE void nr_cubic_lost(NR_HOOK)
{
	nr_cubic(p)->prior = nr_cubic(p)->now;
	nr_cubic_end(&nr_cubic(p)->now, p->cwnd);
}

NR_INLINE void nr_cubic_undo(NR_HOOK)
{
	nr_cubic(p)->now = nr_cubic(p)->prior;
}

/*
 * A timeout, after the loss or during recovery: the next epoch starts at its plateau (4.8). One
 * without a reduction, as after a loss of what was out when a path of gcubic followed, ends the
 * epoch itself.
 */
NR_INLINE void nr_cubic_timed_out(struct nr_cubic_epoch *e)
{
	e->w_max = 0;
	e->start_us = 0;
}

NR_INLINE void nr_cubic_timeout(NR_HOOK)
{
	nr_cubic_timed_out(&nr_cubic(p)->now);
}

NR_INLINE void nr_cubic_restart(NR_HOOK)
{
	nr_cubic(p)->now.start_us = 0;
}

/* The curve goes on at `rise` below or above its plateau, on the side that it is on now. */
NR_INLINE void nr_cubic_go_on(struct nr_cubic_epoch *e, nr_u64 now_us, nr_u64 rise, nr_u32 share)
{
	nr_u64 t = now_us - e->start_us, d = nr_cubic_k(rise, share);

	e->start_us = now_us;
	if (t >= e->k_us)
		e->start_us -= d < now_us ? d : now_us - 1;
	e->k_us = t < e->k_us ? (nr_u32)d : 0;
}

NR_INLINE void nr_cubic_epoch_resized(struct nr_cubic_epoch *e, nr_u32 before, nr_u32 mss)
{
	if (e->w_max)
		e->w_max = nr_resized(e->w_max, before, mss);
	e->w_est = nr_resized(e->w_est, before, mss);
	e->w_prior = nr_cubic_prior(nr_resized((nr_u64)e->w_prior << 24, before, mss));
}

/* C is in packets: the curve goes on at the same bytes. An undo begins a new epoch. */
NR_NOINLINE int nr_cubic_in_packets_of(struct nr_cubic *cubic, nr_u64 now_us, nr_u32 before,
				       nr_u32 mss)
{
	struct nr_cubic_epoch *e;
	nr_u64 rise;

	if (!cubic || !mss)
		return 0;
	e = &cubic->now;
	nr_cubic_epoch_resized(e, before, mss);
	nr_cubic_epoch_resized(&cubic->prior, before, mss);
	cubic->prior.start_us = 0;
	if (!e->start_us)
		return 1;
	rise = nr_cubic_rise(e->k_us, now_us - e->start_us, cubic->share);
	nr_cubic_go_on(e, now_us, nr_resized(rise, before, mss), cubic->share);
	return 1;
}

NR_INLINE void nr_cubic_resized(NR_HOOK, nr_u32 before)
{
	nr_cubic_in_packets_of(nr_cubic(p), ev->now_us, before, ev->mss);
}

NR_INLINE nr_u32 nr_cubic_cut(nr_u32 cwnd)
{
	nr_u32 ssthresh = (nr_u32)(cwnd * 7ull / 10);

	return ssthresh < 2 ? 2 : ssthresh;
}

NR_INLINE nr_u32 nr_cubic_ssthresh(NR_HOOK)
{
	return nr_cubic_cut(p->cwnd);
}

NR_LAW(cubic) = {
    .name = "cubic",
    .code = "cubic",
    .about = "a cubic function of the time since the last loss; 0.7 on loss (uncoupled)",
    .source = "RFC 9438",
    .kind = NR_WINDOW,
    .by_time = 1, /* before 4.0 Linux divided by its estimate of packets per acknowledgement */
    .start = NR_START_hystart,
    .state = sizeof(struct nr_cubic),
    .credit = nr_cubic_growth,
    .ssthresh = nr_cubic_ssthresh,
    .acked = nr_cubic_acked,
    .begin = nr_cubic_begin,
    .grown = nr_cubic_grown,
    .lost = nr_cubic_lost,
    .undo = nr_cubic_undo,
    .timeout = nr_cubic_timeout,
    .restart = nr_cubic_restart,
    .resized = nr_cubic_resized,
};

#endif
