/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Version 1 of BBR: its state, its gains. */
#ifndef NARROWS_BBR_STATE_H
#define NARROWS_BBR_STATE_H

#include "units.h"
#include "filter.h"

#define NR_BBR_PARAMS(P)                                                                           \
	NR_BBR_SHARE(P)                                                                            \
	P(close, close, RATIO, 0, 0, 1,                                                            \
	  "advise the slowest path as backup while all deliver less than this part of the best",   \
	  "laws/bbr/close.h; C-MPBBR, section III-D: 0.4 or 0.6")
NR_LAW_PARAMETERS(bbr, NR_BBR_PARAMS);

/*
 * Startup: 2 / ln 2 = 2.885, rounded up, is the smallest pacing gain that lets the rate double each
 * round while each sample is a round old; Drain is its inverse: what Startup queued leaves in about
 * a round.
 */
#define NR_BBR_HIGH_GAIN (2885u * NR_BBR_ONE / 1000 + 1)
#define NR_BBR_DRAIN_GAIN (1000u * NR_BBR_ONE / 2885)
/* Two BDP in flight: acknowledgements may come late and together. */
#define NR_BBR_CWND_GAIN (2 * NR_BBR_ONE)
/* ProbeBW: a quarter more for a phase, what that queued leaves in the next, six at the estimate. */
#define NR_BBR_PHASES 8u
#define NR_BBR_DOWN (NR_BBR_ONE * 3 / 4)
/* A path of a group sees so many more packets acknowledged at once than its bandwidth says, Q8. */
#define NR_BBR_TOGETHER (13 * NR_BBR_ONE / 4)
/* The estimate of the bandwidth holds for a cycle of phases and two rounds. */
#define NR_BBR_BW_ROUNDS (NR_BBR_PHASES + 2)

/* Times in ms and us are the low words of the clock. Counts of packets wrap. */
struct nr_bbr {
	struct nr_max bw;    /* delivery rates, by rounds, 16 bytes/s */
	struct nr_max group; /* sums of the newest rates of a group's paths, likewise */
	nr_u32 delivered;    /* packets delivered */
	nr_u32 losses;	     /* packets marked lost since the last acknowledgement */
	nr_u32 round;	     /* number of the round trip */
	nr_u32 round_end;    /* it ends when a packet sent after so many deliveries arrives */
	nr_u32 quiet, loud;  /* packets sent after `quiet` to `loud` deliveries: by ProbeRTT */
	nr_u32 min_rtt_us;   /* smallest RTT */
	nr_u32 min_rtt_ms;   /* when it was measured */
	nr_u32 probe_rtt_ms; /* ProbeRTT ends then; 0: the queue is not drained yet */
	nr_u32 cycle_us;     /* when the phase of ProbeBW began */
	nr_u32 full_bw;	     /* Startup: the bandwidth that is to be exceeded, 16 bytes/s */
	nr_u32 lt_bw;	     /* policer: the rate that it lets through, 16 bytes/s; 0: not known */
	nr_u32 lt_delivered; /* policer: `delivered` and time when the interval began, */
	nr_u32 lt_ms;
	nr_u32 lt_lost;	    /* packets marked lost since */
	nr_u32 volume;	    /* delivered by all paths when bbr.close was last asked, kB; */
	nr_u32 asked_ms;    /* when that was */
	nr_u32 epoch_us;    /* aggregation: when its epoch began, */
	nr_u32 epoch_acked; /* packets acknowledged since */
	nr_u32 use;	    /* the bandwidth that the path may use, 16 bytes/s; laws/bbr/share.h */
	nr_u32 part;	    /* of a group's windows, Q16 */
	nr_u16 extra[2]; /* the most beyond the bandwidth, in this window of rounds and the last */
	/* Together, as compilers for Windows begin a new word wherever the type changes. */
	nr_u32 cruise : 9;   /* gain of the phases 2 to 7 */
	nr_u32 follows : 1;  /* another path of the group says which phase it is */
	nr_u32 joins : 1;    /* another is in ProbeRTT */
	nr_u32 hold : 1;     /* another is in the first round of recovery */
	nr_u32 mode : 2;     /* enum nr_bbr_mode */
	nr_u32 recovery : 2; /* enum nr_bbr_recovery */
	nr_u32 conserve : 1; /* the first round of recovery: send what is delivered */
	nr_u32 round_start : 1;
	nr_u32 limited : 1; /* the sample is limited by the application, or by ProbeRTT */
	nr_u32 idle_restart : 1;
	nr_u32 rtt_round : 1; /* ProbeRTT has lasted a round */
	nr_u32 has_rtt : 1;   /* the first pacing rate is from an RTT */
	nr_u32 full : 1;      /* the pipe has been full: Startup is over */
	nr_u32 full_rounds : 2;
	nr_u32 phase : 3; /* of ProbeBW: 0 up, 1 down, 2..7 cruise */
	nr_u32 whole : 1; /* the cycle began with phase 0 and was not interrupted */
	nr_u32 lt_sampling : 1;
	nr_u32 lt_use : 1; /* policer: found, send at lt_bw */
	nr_u32 lt_rounds : 6;
	nr_u32 extra_rounds : 3;
	nr_u32 extra_now : 1; /* which window of rounds */
	nr_u32 answers : 3;   /* in a row, against the path's advice as it is */
	nr_u32 closed : 1;    /* it was advised to be a backup, */
	nr_u32 closings : 3;  /* and how often */
};
NR_LAW_STATE(bbr);

/* The estimate of the path, and that of its group. */
NR_INLINE nr_u32 nr_bbr_own(const struct nr_bbr *b)
{
	return nr_max(&b->bw);
}

NR_INLINE nr_u32 nr_bbr_group_bw(const struct nr_bbr *b)
{
	return nr_max(&b->group);
}

NR_INLINE void nr_bbr_group_sample(struct nr_bbr *b, nr_u32 rates)
{
	nr_max_sample(&b->group, NR_BBR_BW_ROUNDS, b->round, rates);
}

/* Without a group: for when there is one. */
NR_INLINE void nr_bbr_group_none(struct nr_bbr *b)
{
	b->group = b->bw;
}

/* Does the path cruise: may policies lower its gain, or its bandwidth? */
NR_INLINE int nr_bbr_cruises(const struct nr_bbr *b)
{
	return b->mode == NR_BBR_PROBE_BW && b->phase >= 2;
}

/* The gain of cruising, Q8, that makes the average of a cycle `beta`, Q8; 0: there is none. */
NR_INLINE nr_u32 nr_bbr_cruise_gain(nr_u32 beta)
{
	if (NR_BBR_PHASES * beta <= 2 * NR_BBR_ONE)
		return 0;
	return (NR_BBR_PHASES * beta - 2 * NR_BBR_ONE) / (NR_BBR_PHASES - 2);
}

/* The bandwidth to send at, 16 bytes/s. */
NR_INLINE nr_u32 nr_bbr_bw(struct nr_private *p)
{
	struct nr_bbr *b = nr_bbr(p);

	return b->lt_use ? b->lt_bw : b->use;
}

/* The pacing gain of ProbeBW's phase. */
NR_INLINE nr_u32 nr_bbr_phase_gain(const struct nr_bbr *b)
{
	return b->phase == 0 ? NR_BBR_UP : b->phase == 1 ? NR_BBR_DOWN : b->cruise;
}

NR_INLINE nr_u32 nr_bbr_pacing_gain(const struct nr_bbr *b)
{
	switch (b->mode) {
	case NR_BBR_STARTUP:
		return NR_BBR_HIGH_GAIN;
	case NR_BBR_DRAIN:
		return NR_BBR_DRAIN_GAIN;
	case NR_BBR_PROBE_BW:
		return b->lt_use ? NR_BBR_ONE : nr_bbr_phase_gain(b);
	default:
		return NR_BBR_ONE;
	}
}

NR_INLINE nr_u32 nr_bbr_cwnd_gain(const struct nr_bbr *b)
{
	switch (b->mode) {
	case NR_BBR_STARTUP:
	case NR_BBR_DRAIN: /* the window must not stop what pacing lets out */
		return NR_BBR_HIGH_GAIN;
	case NR_BBR_PROBE_BW:
		return NR_BBR_CWND_GAIN;
	default:
		return NR_BBR_ONE;
	}
}

/* A phase of ProbeBW begins. word[0] counts whole cycles. */
NR_INLINE void nr_bbr_enter(NR_HOOK, nr_u32 phase)
{
	struct nr_bbr *b = nr_bbr(p);
	struct nr_path *line = &c->path[i & 7];

	if (phase == 0) {
		if (b->whole && b->phase == NR_BBR_PHASES - 1)
			NR_WRITE(line->word[0],
				 (line->word[0] & ~NR_CYCLES) | ((line->word[0] + 1) & NR_CYCLES));
		b->whole = 1;
	} else if (phase < b->phase) {
		b->whole = 0; /* it jumped back, into a cycle that another began */
	}
	b->phase = phase;
	b->cycle_us = (nr_u32)ev->now_us;
}

/* In a group: another path leads, and is in phase `lead`; NR_BBR_NO_PHASE: none does. */
NR_INLINE void nr_bbr_follow(NR_HOOK, nr_u32 lead, nr_u32 others)
{
	struct nr_bbr *b = nr_bbr(p);

	b->follows = lead < NR_BBR_PHASES && b->mode == NR_BBR_PROBE_BW;
	if (b->follows && lead != b->phase)
		nr_bbr_enter(NR_ARGS, lead);
}

#endif
