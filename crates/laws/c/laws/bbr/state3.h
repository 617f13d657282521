/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Version 3 of BBR: its state, its gains. Names in brackets are the draft's
 * (draft-ietf-ccwg-bbr); "long" and "short" are its longterm and shortterm, older versions' hi and
 * lo.
 */
#ifndef NARROWS_BBR_STATE3_H
#define NARROWS_BBR_STATE3_H

#include "units.h"

NR_LAW_PARAMETERS(bbr, NR_BBR_SHARE);

/* Startup: 4 ln 2 = 2.773 is the smallest pacing gain that lets the rate double each round while
 * the window is two BDP and ends no round early. */
#define NR_BBR_HIGH_GAIN (277u * NR_BBR_ONE / 100 + 1)
/* What Startup queued, at most a BDP as its window has two, leaves in less than two rounds. */
#define NR_BBR_DRAIN_GAIN (NR_BBR_ONE / 2)
#define NR_BBR_DRAIN_ROUNDS 3u /* or the bandwidth was overestimated */
/* Two BDP in flight: acknowledgements may come late and together. A quarter more where pacing has
 * it. */
#define NR_BBR_CWND_GAIN (2 * NR_BBR_ONE)
#define NR_BBR_CWND_GAIN_UP (9 * NR_BBR_ONE / 4)
/* The largest gain of DOWN with which, after UP at 5/4, rates of several flows still converge. */
#define NR_BBR_DOWN (9 * NR_BBR_ONE / 10)
#define NR_BBR_CWND_GAIN_PROBE_RTT (NR_BBR_ONE / 2)
/* The RTT is to be seen without a queue twice in the time that the smallest holds. */
#define NR_BBR_PROBE_RTT_EVERY_MS (NR_BBR_MIN_RTT_MS / 2)
/* A path of a group sees so many more packets acknowledged at once than its bandwidth says, Q8. */
#define NR_BBR_TOGETHER (2 * NR_BBR_ONE)
#define NR_BBR_ANY 0xffffffffu /* a bound that is not set */

/* Phases of ProbeBW. */
enum nr_bbr_phase {
	NR_BBR_PHASE_REFILL = 0, /* a round at the estimate and without short-term bounds */
	NR_BBR_PHASE_UP,	 /* probe for more, until losses, marks or a plateau */
	NR_BBR_PHASE_DOWN,	 /* drain what that queued, and leave headroom */
	NR_BBR_PHASE_CRUISE,	 /* at the estimate, or less by short-term bounds */
	NR_BBR_PHASES,
};

/* A state that spurious losses ended, to go back to. */
enum nr_bbr_undo {
	NR_BBR_UNDO_NONE = 0,
	NR_BBR_UNDO_STARTUP,
	NR_BBR_UNDO_UP,
};

/* Times in ms and us are the low words of the clock. Counts of packets wrap. Bandwidths in 16
 * bytes/s, bounds in packets. */
struct nr_bbr {
	nr_u32 bw[2];	     /* the largest delivery rate of this ProbeBW cycle, and of the last */
	nr_u32 group[2];     /* the largest sum of the newest rates of a group's paths, likewise */
	nr_u32 delivered;    /* packets delivered */
	nr_u32 round_end;    /* a round ends when a packet sent after so many deliveries arrives */
	nr_u32 loud;	     /* packets sent before so many deliveries: by ProbeRTT; 0: none */
	nr_u32 min_rtt_us;   /* smallest RTT of 10 s */
	nr_u32 min_rtt_ms;   /* when it was measured */
	nr_u32 rest_us;	     /* smallest RTT of 5 s, [probe_rtt_min_delay], */
	nr_u32 rest_ms;	     /* when it was measured */
	nr_u32 probe_rtt_ms; /* ProbeRTT ends then; 0: the queue is not drained yet */
	nr_u32 cycle_ms;     /* when the last probe for bandwidth ended */
	nr_u32 full_bw;	     /* the bandwidth that is to be exceeded */
	nr_u32 epoch_us;     /* aggregation: when its epoch began, */
	nr_u32 epoch_acked;  /* packets acknowledged since */
	nr_u32 use;	     /* the bandwidth that the path may use; laws/bbr/share.h */
	nr_u32 part;	     /* of a group's windows, Q16 */
	nr_u32 bw_latest;    /* the largest delivery rate of this loss round, */
	nr_u32 latest;	     /* and the most delivered in a round trip, [inflight_latest] */
	nr_u32 bw_short;     /* bound of the bandwidth since the last probe */
	nr_u32 inflight_short;
	nr_u32 inflight_long;
	nr_u32 loss_round_end; /* likewise, of rounds that begin with a loss */
	nr_u32 up_acked;       /* UP: acknowledged since inflight_long last grew */
	nr_u32 flight;	       /* in a group: what its newest rates have in flight on this path */
	nr_u32 undo_long;      /* inflight_long before a loss, in case it was none */
	nr_u16 losses;	       /* packets marked lost since the last acknowledgement, */
	nr_u16 round_lost;     /* in this loss round */
	nr_u16 marked;	       /* packets reported with ECN CE in this round */
	nr_u16 wait_ms;	       /* [bw_probe_wait] */
	nr_u16 extra[2];  /* the most beyond the bandwidth, in this window of rounds and the last */
	nr_u32 mode : 2;  /* enum nr_bbr_mode */
	nr_u32 phase : 2; /* enum nr_bbr_phase */
	nr_u32 recovery : 2; /* enum nr_bbr_recovery */
	nr_u32 undo : 2;     /* enum nr_bbr_undo */
	nr_u32 full_rounds : 2;
	nr_u32 extra_rounds : 3;
	nr_u32 extra_now : 1; /* which window of rounds */
	nr_u32 round_start : 1;
	nr_u32 loss_round : 1; /* a loss round begins */
	nr_u32 limited : 1;    /* the sample is limited by the application, or by ProbeRTT */
	nr_u32 idle_restart : 1;
	nr_u32 rtt_round : 1; /* ProbeRTT has lasted a round */
	nr_u32 has_rtt : 1;   /* the first pacing rate is from an RTT */
	nr_u32 full : 1;      /* the pipe has been full: Startup is over, [full_bw_reached] */
	nr_u32 full_now : 1;  /* it is */
	nr_u32 stopping : 1;  /* samples of the last probe still come, [ACKS_PROBE_STOPPING] */
	nr_u32 sample : 1;    /* samples are of a probe that has not met congestion yet */
	nr_u32 too_high : 1;  /* the last probe met congestion, [prev_probe_too_high] */
	nr_u32 cautious : 1;  /* the last probe ended before it could, [prev_probe_precautionary] */
	nr_u32 lossy : 1;     /* losses in this loss round */
	nr_u32 ecn : 1;	      /* marks in this loss round */
	nr_u32 follows : 1;   /* another path of the group says when to probe */
	nr_u32 joins : 1;     /* another is in ProbeRTT */
	nr_u32 hold : 1;      /* another has losses in its loss round */
	nr_u32 cruise : 9;    /* gain of CRUISE */
	nr_u32 alpha : 9;     /* moving average of the share of marked packets, Q8 */
	nr_u32 rounds : 7;    /* since the last probe, [rounds_since_probe_up] */
	nr_u32 loss_acks : 3; /* acknowledgements that reported losses in this loss round */
	nr_u32 ecn_rounds : 2; /* Startup: rounds in a row with most packets marked */
	nr_u32 up_rounds : 5;
	nr_u32 drain_rounds : 3;
};
NR_LAW_STATE(bbr);

/* The estimate of the path, and that of its group: the largest of this cycle and the last. */
NR_INLINE nr_u32 nr_bbr_own(const struct nr_bbr *b)
{
	return b->bw[0] > b->bw[1] ? b->bw[0] : b->bw[1];
}

NR_INLINE nr_u32 nr_bbr_group_bw(const struct nr_bbr *b)
{
	return b->group[0] > b->group[1] ? b->group[0] : b->group[1];
}

NR_INLINE void nr_bbr_group_sample(struct nr_bbr *b, nr_u32 rates)
{
	if (rates > b->group[0])
		b->group[0] = rates;
}

/* Without a group: for when there is one. */
NR_INLINE void nr_bbr_group_none(struct nr_bbr *b)
{
	b->group[0] = b->bw[0];
	b->group[1] = b->bw[1];
}

/* A cycle begins, unless the last has no sample. */
NR_INLINE void nr_bbr_next_cycle(struct nr_bbr *b)
{
	if (!b->bw[0])
		return;
	b->bw[1] = b->bw[0];
	b->bw[0] = 0;
	b->group[1] = b->group[0];
	b->group[0] = 0;
}

NR_INLINE int nr_bbr_in(const struct nr_bbr *b, nr_u32 phase)
{
	return b->mode == NR_BBR_PROBE_BW && b->phase == phase;
}

/* Does the path cruise: may policies lower its gain, or its bandwidth? */
NR_INLINE int nr_bbr_cruises(const struct nr_bbr *b)
{
	return nr_bbr_in(b, NR_BBR_PHASE_CRUISE);
}

/* The gain of cruising, Q8, that makes the average of a cycle `beta`, Q8: nearly all of a cycle. */
NR_INLINE nr_u32 nr_bbr_cruise_gain(nr_u32 beta)
{
	return beta;
}

/* Is more sent than is known to fit? */
NR_INLINE int nr_bbr_probes(const struct nr_bbr *b)
{
	return b->mode == NR_BBR_STARTUP || nr_bbr_in(b, NR_BBR_PHASE_REFILL) ||
	       nr_bbr_in(b, NR_BBR_PHASE_UP);
}

/* The bandwidth to send at, 16 bytes/s. */
NR_INLINE nr_u32 nr_bbr_bw(struct nr_private *p)
{
	struct nr_bbr *b = nr_bbr(p);

	return b->use < b->bw_short ? b->use : b->bw_short;
}

NR_INLINE nr_u32 nr_bbr_pacing_gain(const struct nr_bbr *b)
{
	if (b->mode == NR_BBR_STARTUP)
		return NR_BBR_HIGH_GAIN;
	if (b->mode == NR_BBR_DRAIN)
		return NR_BBR_DRAIN_GAIN;
	if (nr_bbr_in(b, NR_BBR_PHASE_UP))
		return NR_BBR_UP;
	if (nr_bbr_in(b, NR_BBR_PHASE_DOWN))
		return NR_BBR_DOWN;
	return nr_bbr_cruises(b) ? b->cruise : NR_BBR_ONE;
}

NR_INLINE nr_u32 nr_bbr_cwnd_gain(const struct nr_bbr *b)
{
	if (b->mode == NR_BBR_PROBE_RTT)
		return NR_BBR_CWND_GAIN_PROBE_RTT;
	return nr_bbr_in(b, NR_BBR_PHASE_UP) ? NR_BBR_CWND_GAIN_UP : NR_BBR_CWND_GAIN;
}

/* A round begins with the next packet. */
NR_INLINE void nr_bbr_start_round(struct nr_bbr *b)
{
	b->round_end = b->delivered;
	b->marked = 0;
}

/* Forgets what losses and marks since the last probe have said. */
NR_INLINE void nr_bbr_reset_short(struct nr_bbr *b)
{
	b->bw_short = NR_BBR_ANY;
	b->inflight_short = NR_BBR_ANY;
}

NR_INLINE void nr_bbr_reset_full(struct nr_bbr *b, nr_u32 bw)
{
	b->full_bw = bw;
	b->full_rounds = 0;
	b->full_now = 0;
}

#endif
