/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Units and constants of all BBR laws. Each version has a state of its own, `struct nr_bbr` in
 * state.h (1) or state3.h (3), which its header includes before the files that both share:
 * filter.h, share.h, volume.h, pace.h.
 */
#ifndef NARROWS_BBR_UNITS_H
#define NARROWS_BBR_UNITS_H

#include "../../flows.h"
#include "../../law.h"

/* Policies of laws/bbr/share.h. */
enum nr_share {
	NR_SHARE_NONE = 0,
	NR_SHARE_HAN,
	NR_SHARE_PUBLISHED,
	NR_SHARE_GROUP,
};

#define NR_BBR_SHARE(P)                                                                            \
	P(share, share, SHARE, 3, 0, 3, "what coupled paths may use of their bandwidth",           \
	  "laws/bbr/share.h; C-MPBBR, section III; Han et al., 2019")

/* Gains are Q8. */
#define NR_BBR_ONE 256u
#define NR_BBR_UP (NR_BBR_ONE * 5 / 4) /* a quarter more: what probes send */
#define NR_BBR_MIN_CWND 4u	       /* packets: delayed acknowledgements keep coming */
#define NR_BBR_MARGIN 99u	 /* percent of the estimate that is sent, so that no queue builds */
#define NR_BBR_FULL_ROUNDS 3u	 /* rounds with less than a quarter more: the pipe is full */
#define NR_BBR_MIN_RTT_MS 10000u /* the smallest RTT holds for this time */
#define NR_BBR_PROBE_RTT_MS 200u /* for which little is sent to measure it again, 2 % */
#define NR_BBR_NO_RTT 0xffffffffu
#define NR_BBR_NO_PHASE 8u    /* not in ProbeBW */
#define NR_BBR_MET (1u << 16) /* with phases as bits: a probe met congestion */
#define NR_BBR_PART 65536u    /* all of a group's windows */

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

/* 32 bits of the clock, and the slot, mixed (a finalizer of MurmurHash3). A replay draws the same.
 */
NR_INLINE nr_u32 nr_bbr_random(nr_u32 i, const struct nr_event *ev)
{
	nr_u32 x = (nr_u32)ev->now_us ^ i << 29;

	x = (x ^ x >> 16) * 0x85ebca6bu;
	x = (x ^ x >> 13) * 0xc2b2ae35u;
	return x ^ x >> 16;
}

#endif
