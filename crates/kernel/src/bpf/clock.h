/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peer's TCP timestamps (RFC 7323) as a clock, and one-way delays by it. Independent of the
 * kernel, so that ../../tests/clock.rs can run it.
 *
 *   d = tsval tick - (now - rtt)
 *
 * tsval is of an acknowledgement that arrives now; rtt is that of the newest segment that it
 * covers, so that now - rtt is when that one was sent, by our own note. The time stamp that is
 * echoed would be that of the first segment that a delayed acknowledgement waited for, and so
 * contain the wait. Of our clock only the note is used, which is of 1 us; the resolution is that of
 * the peer's clock.
 *
 * tick is not negotiated. It is found by how far the peer's clock goes between two samples, which
 * is known to a round trip: it stamps after the segment was sent and before the acknowledgement
 * came. A clock that goes neither by 1 us nor by 1 ms is not used.
 *
 * The clock is watched. It stepped if the way back is shorter than ever, or longer than the whole
 * round trip allows. Then it is learnt anew, and the delay goes on from where it was, so that the
 * step is no queue. (A step back would be a timestamp that PAWS refuses, and does not come here.)
 * In the first second how short the way back can be is not known yet; and after a long silence the
 * clock is learnt anew, too.
 *
 * Valid: clocks that differ by less than 244 ppm; d wraps, as all times here, at 2^32 us.
 */
#ifndef NR_CLOCK_H
#define NR_CLOCK_H

#include "narrows.h"

/* What the detector samples of a control's paths. */
enum nr_signal {
	NR_SIGNAL_RTT = 0,
	NR_SIGNAL_SENDER_MS, /* one-way delays, by a peer's clock of 1 ms or 1 us */
	NR_SIGNAL_SENDER_US, /* by one of 1 us */
};

/* What it samples of a path. */
enum nr_delay {
	NR_DELAY_RTT = 0, /* round-trip times, as the control has it */
	NR_DELAY_UNKNOWN, /* nothing: the peer's clock is not known yet, or again */
	NR_DELAY_MS,	  /* one-way delays, in ticks of 1 ms */
	NR_DELAY_US,	  /* in ticks of 1 us */
	/* Round-trip times, as there is no such clock; of the last two their growth, which goes on
	   from the one-way delays that there may have been: */
	NR_DELAY_NO_TIMESTAMPS, /* none were negotiated */
	NR_DELAY_NO_US,		/* its ticks are of 1 ms, and the control wants 1 us */
	NR_DELAY_NO_CLOCK,	/* it goes by neither, or does not go evenly */
};

/* A clock is watched for so long, and for so many round trips, before it is believed. */
#define NR_CLOCK_US 100000u
#define NR_CLOCK_RTTS 8u
/* So long the shortest way back is looked for. */
#define NR_CLOCK_NEW_US 1000000u
/*
 * A sample that others are compared with is replaced after that, by one of a short way back; if
 * none comes for as long again, the clock is learnt anew.
 */
#define NR_CLOCK_OLD_US (1u << 26)
/* Clocks may go apart by so much of a time: 244 ppm. */
#define NR_CLOCK_DRIFT(us) ((us) >> 12)
/* What a way back may be shorter by than any before, and longer by than the round trip, us. */
#define NR_CLOCK_STEP_US 5000
/* Failures until a clock is not used any more; forgotten with an old sample. */
#define NR_CLOCK_FAILURES 3

/* Of a socket. All times wrap. */
struct nr_clock {
	nr_u32 tsval;	 /* of the sample that others are compared with */
	nr_u32 at_us;	 /* when it arrived */
	nr_u32 rtt_us;	 /* its round trip; 0: there is none */
	nr_s32 was_us;	 /* its delay, relative */
	nr_s32 least_us; /* the shortest way back since then, less that sample's */
	nr_s32 owd_us;	 /* newest delay */
	nr_u8 delay;	 /* enum nr_delay */
	nr_u8 told;	 /* that as last written for readers outside */
	nr_u8 fresh;	 /* 1: owd_us was not reported yet */
	nr_u8 failures;
};

/* The round trip is what the detector samples, as it is. */
NR_INLINE int nr_delay_is_rtt(nr_u32 delay)
{
	return delay == NR_DELAY_RTT || delay == NR_DELAY_NO_TIMESTAMPS;
}

/*
 * How much further than ours the peer's clock of `tick` us went since the sample in `c`, us, in
 * *ahead. False: it cannot have been that clock.
 */
NR_INLINE int nr_clock_fits(const struct nr_clock *c, nr_u32 tick, nr_u32 ticks, nr_u32 elapsed,
			    nr_u32 rtt_us, nr_s32 *ahead)
{
	nr_s32 slack = (nr_s32)(tick + (elapsed >> 10));

	*ahead = (nr_s32)(ticks * tick - elapsed);
	return (tick == 1 || ticks <= ~0u / 1000) && *ahead >= -(nr_s32)rtt_us - slack &&
	       *ahead <= (nr_s32)c->rtt_us + slack;
}

NR_INLINE void nr_clock_compare_with(struct nr_clock *c, nr_u32 tsval, nr_u32 now_us, nr_u32 rtt_us,
				     nr_s32 owd_us)
{
	c->tsval = tsval;
	c->at_us = now_us;
	c->rtt_us = rtt_us;
	c->was_us = owd_us;
	c->least_us = 0;
}

/* The clock is not what it was taken for: it is learnt from this sample on, or given up. */
NR_INLINE void nr_clock_fails(struct nr_clock *c, nr_u32 tsval, nr_u32 now_us, nr_u32 rtt_us)
{
	nr_clock_compare_with(c, tsval, now_us, rtt_us, c->owd_us);
	c->delay = ++c->failures < NR_CLOCK_FAILURES ? NR_DELAY_UNKNOWN : NR_DELAY_NO_CLOCK;
}

/* What the clock proves to be, as far as it has been watched. */
NR_INLINE void nr_clock_learn(struct nr_clock *c, nr_u32 tsval, nr_u32 now_us, nr_u32 rtt_us,
			      nr_u32 signal)
{
	nr_u32 elapsed = now_us - c->at_us;
	nr_s32 ahead;

	if (!c->rtt_us || elapsed > NR_CLOCK_OLD_US) {
		nr_clock_compare_with(c, tsval, now_us, rtt_us, c->owd_us);
		return;
	}
	if (elapsed < NR_CLOCK_US || elapsed / NR_CLOCK_RTTS < rtt_us ||
	    elapsed / NR_CLOCK_RTTS < c->rtt_us)
		return;
	if (nr_clock_fits(c, 1, tsval - c->tsval, elapsed, rtt_us, &ahead)) {
		c->delay = NR_DELAY_US;
	} else if (nr_clock_fits(c, 1000, tsval - c->tsval, elapsed, rtt_us, &ahead)) {
		c->delay = signal == NR_SIGNAL_SENDER_US ? NR_DELAY_NO_US : NR_DELAY_MS;
	} else {
		nr_clock_fails(c, tsval, now_us, rtt_us);
		return;
	}
	/* Of those before it is not known how long their ways back were. */
	nr_clock_compare_with(c, tsval, now_us, rtt_us, c->owd_us);
}

/*
 * An acknowledgement with a timestamp arrives, whose newest segment has the round trip `rtt_us` >
 * 0. `signal`: not NR_SIGNAL_RTT. Sets `fresh` if there is a delay in owd_us.
 */
NR_INLINE void nr_clock_sample(struct nr_clock *c, nr_u32 tsval, nr_u32 now_us, nr_u32 rtt_us,
			       nr_u32 signal)
{
	nr_u32 elapsed, tick;
	nr_s32 ahead, longer, step;

	if (nr_delay_is_rtt(c->delay))
		return;
	if (c->delay == NR_DELAY_UNKNOWN)
		nr_clock_learn(c, tsval, now_us, rtt_us, signal);
	if (c->delay == NR_DELAY_NO_US || c->delay == NR_DELAY_NO_CLOCK) {
		c->owd_us = (nr_s32)((nr_u32)c->was_us + (rtt_us - c->rtt_us));
		c->fresh = 1;
		return;
	}
	if (c->delay != NR_DELAY_MS && c->delay != NR_DELAY_US)
		return;
	elapsed = now_us - c->at_us;
	tick = c->delay == NR_DELAY_US ? 1 : 1000;
	if (elapsed > 2 * NR_CLOCK_OLD_US || tsval - c->tsval > ~0u / tick) {
		nr_clock_compare_with(c, tsval, now_us, rtt_us, c->owd_us);
		c->delay = NR_DELAY_UNKNOWN;
		return;
	}
	if (!nr_clock_fits(c, tick, tsval - c->tsval, elapsed, rtt_us, &ahead)) {
		nr_clock_fails(c, tsval, now_us, rtt_us);
		return;
	}
	/* How much longer the way back took than the shortest. */
	longer = -ahead - c->least_us;
	step = NR_CLOCK_STEP_US + (nr_s32)(tick + NR_CLOCK_DRIFT(elapsed));
	if ((longer < -step && elapsed > NR_CLOCK_NEW_US) || longer > (nr_s32)rtt_us + step) {
		nr_clock_fails(c, tsval, now_us, rtt_us);
		return;
	}
	if (longer < 0)
		c->least_us = -ahead;
	/* The round trip less the way back. */
	c->owd_us = (nr_s32)((nr_u32)c->was_us + (rtt_us - c->rtt_us) + (nr_u32)ahead);
	c->fresh = 1;
	if (elapsed > NR_CLOCK_OLD_US && longer <= step) {
		nr_clock_compare_with(c, tsval, now_us, rtt_us, c->owd_us);
		c->failures = 0;
	}
}

#endif
