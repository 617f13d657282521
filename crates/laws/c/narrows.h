/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Types shared by laws, detectors, slow starts and hosts; docs/method/contract.md is their
 * reference. A multipath connection is a table of paths (MPTCP: subflows). A detector gives each
 * path two masks: of the paths that it may share a bottleneck with, and of those among them that it
 * is known to. A law reads the paths in the masks of its path, a slow start sets the first window.
 *
 * Units: windows in packets of the path's MSS; times in microseconds (srtt in 1/8 us, as Linux);
 * rates in bytes per second.
 *
 * Concurrency: the events of one path are sequential; those of its siblings may run on other CPUs
 * at the same time, without locks. A path writes only its own line, one word at a time (NR_WRITE),
 * and reads its siblings' words (NR_READ), which may be one event old. Four words have several
 * writers and change only by compare-and-swap: masks, cuts and tick of struct nr_conn, and debit of
 * a line. Siblings may withdraw the advice of a path that is silent.
 */
#ifndef NARROWS_H
#define NARROWS_H

#include "nr_port.h"

#define NR_VERSION 16		    /* layout of nr_conn, nr_path, nr_private and nr_detection */
#define NR_MAX_PATHS 8		    /* paths in a connection; bound of every loop */
#define NR_LAW_PARAMS 16	    /* maximum words of a law's parameters */
#define NR_JOIN_PARAMS 4	    /* likewise of a slow start at the join */
#define NR_IDLE_US 1000000u	    /* a path silent for longer (and for 2 srtt) is idle */
#define NR_INIT_CWND 10u	    /* RFC 6928 */
#define NR_SSTHRESH_MAX 0x7fffffffu /* no threshold yet; Linux: TCP_INFINITE_SSTHRESH */
#define NR_CWND_MAX (1u << 30)

/* Masks: 8 paths x 8 bits in one word, byte i is the mask of path i, bit j stands for path j. */
#define NR_MASKS_SHARED 0xffffffffffffffffull
#define NR_MASKS_DISJOINT 0x8040201008040201ull
/* Bit 0 of every row; shifted left by j it is the column of path j. */
#define NR_MASKS_COLUMN 0x0101010101010101ull

/* Credit: fraction of a packet that a window has earned but not yet grown by, in 2^-40 packet. */
#define NR_CREDIT_BITS 40
#define NR_ONE (1ull << NR_CREDIT_BITS)

enum nr_state {
	NR_FREE = 0, /* no path in this slot */
	NR_JOINING,  /* handshake done, nothing acknowledged yet */
	NR_ACTIVE,   /* carries data: the only state that counts in a law's sums */
	NR_IDLE,     /* nothing to send; siblings also detect it from seen_ms */
	NR_BACKUP,   /* used only when others fail */
	NR_FAILED,   /* timeouts in a row without an acknowledgement */
};

enum nr_kind {
	NR_JOINED = 1, /* the path exists; the law sets its first window */
	NR_ACKED,      /* an acknowledgement, also inside recovery */
	NR_RECOVERY,   /* loss found by acknowledgements: reduce once */
	NR_RECOVERED,  /* recovery is over: the window is ssthresh */
	NR_TIMEOUT,    /* the retransmission timer fired */
	NR_UNDO,       /* the last reduction was spurious */
	NR_ECN,	       /* congestion was marked: reduce once, no loss */
	NR_RESTART,    /* data after idle; ev->cwnd is the host's restart window */
	NR_LEFT,       /* the path is gone; its slot becomes free */
};

enum nr_flag {
	NR_F_CWND_LIMITED = 1 << 0, /* the sender was limited by the window */
	NR_F_APP_LIMITED = 1 << 1,  /* the rate sample was limited by the application */
	NR_F_IN_RECOVERY = 1 << 2,  /* loss recovery: no window growth */
	NR_F_ROUND_START = 1 << 3,  /* the sample's packet was sent after the last round began */
	NR_F_RETRANS = 1 << 4,	/* the sample's packet was retransmitted; TIMEOUT: by the timer */
	NR_F_OWD = 1 << 5,	/* owd_us is valid */
	NR_F_DWELL = 1 << 6,	/* dwell_us is valid */
	NR_F_PACED = 1 << 7,	/* the host paces what it sends */
	NR_F_SRTT = 1 << 8,	/* a detector samples srtt8_us, not the delay of the sample */
	NR_F_NO_DELAY = 1 << 9, /* rtt_us does not stand in for an owd_us that is missing */
	NR_F_RESIZED = 1 << 10, /* if mss has changed, cwnd and ssthresh are in packets of that */
};

enum nr_advice {
	NR_ADVICE_NONE = 0,
	NR_ADVICE_BACKUP, /* stop scheduling data on this path */
	NR_ADVICE_CLOSE,  /* close this path */
};

/*
 * One event of one path. The host fills all fields before each call; unknown values are 0. The
 * sample's packet of RECOVERY is the newest one that was lost, of ECN the newest one whose
 * acknowledgement told of the mark.
 */
struct nr_event {
	nr_u64 now_us;		 /* host's monotonic clock */
	nr_u64 sent_us;		 /* when the sample's packet was sent */
	nr_u64 rate;		 /* delivery rate of the sample, bytes/s */
	nr_u32 kind;		 /* enum nr_kind */
	nr_u32 flags;		 /* enum nr_flag */
	nr_u32 state;		 /* enum nr_state of this path in the host's view */
	nr_u32 delivered;	 /* packets newly acknowledged, selectively or not */
	nr_u32 lost;		 /* packets newly marked lost */
	nr_u32 marked;		 /* packets newly reported with ECN CE */
	nr_u32 rtt_us;		 /* round-trip time of the sample */
	nr_s32 owd_us;		 /* relative one-way delay of the sample */
	nr_u32 dwell_us;	 /* delay of the sample by a delayed acknowledgement */
	nr_u32 inflight;	 /* packets in flight after this event */
	nr_u32 sample_inflight;	 /* packets in flight when the sample's packet was sent */
	nr_u32 sample_delivered; /* packets delivered since it was sent */
	nr_u32 sample_lost;	 /* packets lost since it was sent */
	nr_u32 cwnd;		 /* the host's current window; outside recovery the law adopts it */
	nr_u32 ssthresh;	 /* the host's current threshold, likewise */
	nr_u32 srtt8_us;	 /* smoothed RTT, 1/8 us */
	nr_u32 mss;		 /* payload bytes of a full packet */
	nr_u32 wait_us;		 /* until pacing lets the next packet leave */
};

#define NR_CYCLES_BITS 5 /* of word[0]: in a model law, its full ProbeBW cycles, wraps */
#define NR_CYCLES ((1u << NR_CYCLES_BITS) - 1)
#define NR_PHASE 15u	   /* of word[1]: in a model law, its phase, of which detectors know */
#define NR_IN_PROBE_RTT 9u /* this one */

/* A path's published line. Written by the path (debit and advice also by siblings), read by its
 * siblings. */
struct nr_path {
	nr_u32 state;	 /* enum nr_state */
	nr_u32 cwnd;	 /* packets, whole; in recovery already the window after it */
	nr_u32 ssthresh; /* packets */
	nr_u32 srtt8_us; /* 1/8 us, 0 before the first sample */
	nr_u32 mss;	 /* bytes */
	nr_u32 inflight; /* packets, before the last event's acknowledgement */
	nr_u32 seen_ms;	 /* time of the last event, wraps */
	nr_u32 debit;	 /* packets that siblings took from cwnd, not yet applied; see shared.h */
	nr_u64 pacing_rate; /* bytes/s, 0: chosen by the host */
	nr_u64 bw;	    /* model laws: bottleneck bandwidth estimate, bytes/s */
	nr_u32 advice;	    /* enum nr_advice */
	nr_u32 generation;  /* of the slot: incremented at every join */
	nr_u32 word[2];	    /* published words of the law; meaning in its header */
} __attribute__((aligned(64)));
NR_STATIC_ASSERT(sizeof(struct nr_path) == 64, "a published line is one cache line");

/*
 * What a path publishes of one interval for a detector. Double-buffered: interval k is in record
 * k & 1; its stamp is written last and is k + 1 (0: never written). A path claims the decision on
 * interval k when all paths that carry data have closed it, and before any of them closes k + 2;
 * see detect/detection.h. Another stamp means no sample.
 */
struct nr_record {
	nr_u32 stamp;
	nr_u32 word[7]; /* meaning in the detector's header */
};

/* What the paths of a connection share. */
struct nr_conn {
	nr_u64 masks;		     /* 8 coupling masks of 8 bits */
	nr_u64 cuts;		     /* likewise: the paths that are known to share */
	nr_u64 tick;		     /* stamp of the last interval claimed for a decision */
	nr_u32 version;		     /* NR_VERSION */
	nr_u32 law;		     /* number of the law, for readers outside */
	nr_u32 window[2];	     /* struct nr_window_params */
	nr_u32 param[NR_LAW_PARAMS]; /* the law's parameters */
	nr_u32 join[NR_JOIN_PARAMS]; /* those of the slow start at the join */
	struct nr_path path[NR_MAX_PATHS];
	struct nr_record record[NR_MAX_PATHS][2];
};

/*
 * The coupling mask of path i: the paths that share one flow's fair share, i included. They share
 * its bottleneck, or may: that is not known of all of them.
 */
NR_INLINE nr_u32 nr_mask(const struct nr_conn *c, nr_u32 i)
{
	return (nr_u32)(NR_READ(c->masks) >> (8 * (i & 7))) & 0xff;
}

/*
 * Those of them that are known to share path i's bottleneck: a loss of one is a loss of all. The
 * two words change one after the other.
 */
NR_INLINE nr_u32 nr_cut_mask(const struct nr_conn *c, nr_u32 i)
{
	return (nr_u32)((NR_READ(c->cuts) & NR_READ(c->masks)) >> (8 * (i & 7))) & 0xff;
}

#endif
