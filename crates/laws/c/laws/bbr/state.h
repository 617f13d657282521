/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* State, constants and units of the BBR laws. */
#ifndef NARROWS_BBR_STATE_H
#define NARROWS_BBR_STATE_H

#include "../../flows.h"
#include "../../law.h"
#include "filter.h"

/* Gains are Q8. */
#define NR_BBR_ONE 256u
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
#define NR_BBR_UP (NR_BBR_ONE * 5 / 4)
#define NR_BBR_DOWN (NR_BBR_ONE * 3 / 4)
/* The estimate of the bandwidth holds for a cycle of phases and two rounds. */
#define NR_BBR_BW_ROUNDS (NR_BBR_PHASES + 2)
#define NR_BBR_MIN_CWND 4u    /* packets: delayed acknowledgements keep coming */
#define NR_BBR_MARGIN 99u     /* percent of the estimate that is sent, so that no queue builds */
#define NR_BBR_FULL_ROUNDS 3u /* rounds with less than a quarter more: the pipe is full */

#define NR_BBR_MIN_RTT_MS 10000u /* the smallest RTT is measured again after this time, */
#define NR_BBR_PROBE_RTT_MS 200u /* for this time, 2 % */
#define NR_BBR_NO_RTT 0xffffffffu

/* Bandwidths are kept in 16 bytes/s, a fifth of Linux's unit (a packet per 2^24 us): up to 68 GB/s.
 */
#define NR_BBR_BW_SHIFT 4

enum nr_bbr_mode {
	NR_BBR_STARTUP = 0, /* double each round, until the bandwidth grows no more */
	NR_BBR_DRAIN,	    /* drain the queue of Startup */
	NR_BBR_PROBE_BW,    /* send at the estimate, and probe for more */
	NR_BBR_PROBE_RTT,   /* send little, to see the RTT without a queue */
};

/* Loss recovery as the law saw it last. */
enum nr_bbr_recovery {
	NR_BBR_OPEN = 0,
	NR_BBR_LOSS,	 /* after a timeout */
	NR_BBR_ENTER,	 /* fast recovery has begun, no acknowledgement since */
	NR_BBR_RECOVERY, /* fast recovery */
};

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
	nr_u32 cruise : 9;  /* gain of the phases 2 to 7 */
	nr_u32 follows : 1; /* another path of the group says which phase it is */
	nr_u32 joins : 1;   /* another is in ProbeRTT */
	nr_u32 hold : 1;    /* another is in the first round of recovery */
	nr_u32 held : 1;    /* that at the last acknowledgement */
	nr_u16 extra[2]; /* the most beyond the bandwidth, in this window of rounds and the last */
	nr_u32 mode : 2; /* enum nr_bbr_mode */
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

NR_INLINE nr_u32 nr_bbr_mss(const struct nr_conn *c, nr_u32 i)
{
	nr_u32 mss = c->path[i & 7].mss;

	return mss ? mss : 1;
}

/* bytes/s in the unit of the law */
NR_INLINE nr_u32 nr_bbr_unit(nr_u64 rate)
{
	rate >>= NR_BBR_BW_SHIFT;
	return rate < 0xffffffffu ? (nr_u32)rate : 0xffffffffu;
}

/* What `bw` delivers in `us`, bytes. */
NR_INLINE nr_u64 nr_bbr_bytes(nr_u32 bw, nr_u32 us)
{
	return (nr_u64)bw * us / (1000000u >> NR_BBR_BW_SHIFT);
}

/* The rate that it takes to deliver so many packets in `us`, us > 0. */
NR_INLINE nr_u32 nr_bbr_rate(const struct nr_conn *c, nr_u32 i, nr_u32 packets, nr_u32 us)
{
	return nr_bbr_unit((nr_u64)packets * nr_bbr_mss(c, i) * 1000000u / us);
}

/* Pacing rate for a bandwidth and a gain, bytes/s. */
NR_INLINE nr_u64 nr_bbr_pace(nr_u32 bw, nr_u32 gain)
{
	return ((nr_u64)bw << NR_BBR_BW_SHIFT) * gain / NR_BBR_ONE * NR_BBR_MARGIN / 100;
}

/* Packets of a burst, as hosts form them: a millisecond's worth; two from 1.2 Mbit/s on. */
NR_INLINE nr_u32 nr_bbr_burst(const struct nr_conn *c, nr_u32 i)
{
	nr_u64 rate = c->path[i & 7].pacing_rate, bytes = rate >> 10;
	nr_u32 least = rate < 1200000 / 8 ? 1 : 2, packets;

	packets = (nr_u32)(bytes < 65216 ? bytes : 65216) / nr_bbr_mss(c, i); /* Linux: an skb */
	if (packets < least)
		packets = least;
	return packets < 127 ? packets : 127;
}

/* Does `a` come after `b`, wrapping? */
NR_INLINE int nr_after(nr_u32 a, nr_u32 b)
{
	return (nr_s32)(a - b) > 0;
}

NR_INLINE nr_u32 nr_now_ms(const struct nr_event *ev)
{
	return (nr_u32)(ev->now_us / 1000);
}

#endif
