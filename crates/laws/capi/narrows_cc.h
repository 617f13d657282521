/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Narrows as a C library: congestion control for the paths of a connection, which knows which paths
 * share a bottleneck. For transport stacks in C and C++; no I/O, no threads, no clock of its own.
 *
 *   struct narrows_cc *cc = narrows_cc_create("olia+xcorr", NULL, error, sizeof(error));
 *   struct narrows_event event = {.kind = NARROWS_JOINED, .state = NARROWS_JOINING, ...};
 *   narrows_cc_event(cc, 0, &event);        // the first path: number 0
 *   narrows_cc_read(cc, 0, &path);          // path.cwnd, path.bytes, path.pacing_rate
 *
 * A connection has up to NARROWS_PATHS paths, which the stack numbers from 0. It reports what
 * happens on each as an event and obeys what it reads after. Calls for one connection must not
 * overlap; different connections are independent.
 *
 * Windows are in packets of the path's MSS, times in microseconds, rates in bytes per second.
 */
#ifndef NARROWS_CC_H
#define NARROWS_CC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NARROWS_API __attribute__((visibility("default")))
#else
#define NARROWS_API
#endif

/* Raised with every change of this header that breaks programs compiled with the one before. */
#define NARROWS_ABI 1

#define NARROWS_PATHS 8
#define NARROWS_NO_SSTHRESH 0x7fffffffu /* no slow start threshold yet */

/* What happened on a path. */
enum narrows_kind {
	NARROWS_JOINED = 1, /* the path joins with `cwnd` packets, or 0: 10; lisa may take fewer */
	NARROWS_ACKED,	    /* an acknowledgement, also inside recovery */
	NARROWS_RECOVERY,   /* loss found by acknowledgements: once per round trip */
	NARROWS_RECOVERED,  /* a packet was acknowledged that was sent after that */
	NARROWS_TIMEOUT,    /* the retransmission timer fired; QUIC: persistent congestion */
	NARROWS_UNDO,	    /* the last reduction was spurious: nothing was lost */
	NARROWS_ECN,	    /* congestion was marked: once per round trip */
	NARROWS_RESTART,    /* data after idle; `cwnd` is the stack's restart window */
	NARROWS_LEFT,	    /* the path is gone, its number free */
};

/* The path as the stack sees it. */
enum narrows_state {
	NARROWS_FREE = 0, /* only in LEFT */
	NARROWS_JOINING,  /* nothing acknowledged yet */
	NARROWS_ACTIVE,	  /* carries data: the only state that counts for its siblings */
	NARROWS_IDLE,	  /* nothing to send */
	NARROWS_BACKUP,	  /* used only when others fail */
	NARROWS_FAILED,	  /* timeouts in a row without an acknowledgement */
};

/*
 * A detector takes a single packet after 40 ms of silence for a delayed acknowledgement, as TCP's
 * are, and does not sample it; if all are, it subtracts 40 ms. Where receivers wait less (QUIC:
 * 25 ms), flag single packets RETRANS, and if there are no others report the wait with DWELL. Where
 * the wait is known to be 0, as for two packets at once, flag DWELL with a dwell_us of 0.
 */
enum narrows_flag {
	NARROWS_F_CWND_LIMITED = 1 << 0, /* the window limited the sender: else it does not grow */
	NARROWS_F_APP_LIMITED = 1 << 1,	 /* `rate` was limited by the application */
	NARROWS_F_IN_RECOVERY = 1 << 2,	 /* from RECOVERY or ECN to RECOVERED; not after TIMEOUT */
	NARROWS_F_ROUND_START = 1 << 3,	 /* the packet was sent after the last round began */
	NARROWS_F_RETRANS = 1 << 4, /* the packet was retransmitted; TIMEOUT: by the timer before */
	NARROWS_F_OWD = 1 << 5,	    /* owd_us is valid */
	NARROWS_F_DWELL = 1 << 6,   /* dwell_us is valid */
	NARROWS_F_PACED = 1 << 7,   /* the stack paces what it sends */
	NARROWS_F_SRTT = 1 << 8, /* detectors sample srtt8_us: rtt_us is not there or too coarse */
	NARROWS_F_NO_DELAY = 1 << 9, /* rtt_us does not stand in for an owd_us that is missing */
	NARROWS_F_RESIZED = 1 << 10, /* cwnd and ssthresh are in packets of mss, if it is new */
};

/*
 * One event. What is not known is 0. `the sample` is the newest packet that the acknowledgement
 * reports; the words about it are for model laws, whose names are bbr and bbr3, and for detectors.
 * With RECOVERY it is the newest packet that was lost, with ECN the newest whose acknowledgement
 * told of the mark; greno and gcubic look when it was sent.
 */
struct narrows_event {
	uint64_t now_us;	   /* the stack's monotonic clock, of all paths the same */
	uint64_t sent_us;	   /* when the sample was sent */
	uint64_t rate;		   /* delivery rate of the sample, bytes/s */
	uint32_t kind;		   /* enum narrows_kind */
	uint32_t flags;		   /* enum narrows_flag */
	uint32_t state;		   /* enum narrows_state */
	uint32_t delivered;	   /* packets newly acknowledged */
	uint32_t lost;		   /* packets newly found lost; each is told once */
	uint32_t marked;	   /* packets newly reported with ECN CE */
	uint32_t rtt_us;	   /* round-trip time of the sample */
	int32_t owd_us;		   /* relative one-way delay of the sample */
	uint32_t dwell_us;	   /* delay of the sample by a delayed acknowledgement */
	uint32_t inflight;	   /* packets in flight after this event */
	uint32_t sample_inflight;  /* packets in flight when the sample was sent */
	uint32_t sample_delivered; /* packets delivered since it was sent */
	uint32_t sample_lost;	   /* packets lost since it was sent */
	uint32_t cwnd;		   /* the stack's window: it wins if it differs, outside recovery */
	uint32_t ssthresh;	   /* likewise; 0: as read */
	uint32_t srtt8_us;	   /* smoothed round-trip time, in 1/8 us */
	uint32_t mss;		   /* payload bytes of a full packet */
	uint32_t wait_us;	   /* until pacing lets the next packet leave */
};

enum narrows_advice {
	NARROWS_ADVICE_NONE = 0,
	NARROWS_ADVICE_BACKUP, /* schedule no data on the path */
	NARROWS_ADVICE_CLOSE,  /* close it */
};

/* Places besides groups, which have numbers below NARROWS_PATHS. */
#define NARROWS_CLEAR 0xfeu	/* not congested */
#define NARROWS_UNDECIDED 0xffu /* nothing is known, or not enough; or the detector is fixed */

/* What a path may do now. */
struct narrows_path {
	uint64_t bytes;	      /* the window in bytes, with the fraction of a packet */
	uint64_t pacing_rate; /* bytes/s; 0: the stack's rule */
	uint64_t bw;	      /* estimate of a model law, bytes/s; 0: none */
	int64_t credit;	      /* earned but not yet grown by, in 2^-40 packet */
	uint32_t cwnd;	      /* window, whole packets; in recovery the one that it ends with */
	uint32_t ssthresh;    /* packets */
	uint32_t advice;      /* enum narrows_advice */
	uint32_t coupled;     /* paths that share one flow's fair share with it, a bit each */
	uint32_t cut;	      /* those of them that are known to share its bottleneck */
	uint32_t place;	      /* the newest decision: group, NARROWS_CLEAR, NARROWS_UNDECIDED */
};

enum narrows_result {
	NARROWS_OK = 0,
	NARROWS_NO_PATH = -1,  /* no such number, or no path has joined there */
	NARROWS_NO_EVENT = -2, /* a kind or state that there is not, or no MSS; LEFT needs none */
};

struct narrows_cc;

/* NARROWS_ABI of the library: compare it with that of the header. */
NARROWS_API uint32_t narrows_cc_abi(void);

/*
 * A connection without paths. `control` is LAW[+DETECTOR][+START], as `narrows list` shows them:
 * "reno", "olia", "greno+xcorr", "olia+lisa". `settings` are parameters of it,
 * "xcorr.samples=8 decision.every=2" (`narrows list params`), or NULL. Returns NULL: not a control,
 * not a setting, or no memory; the reason is in `error`, one line of at most `size` bytes with its
 * final zero, unless `size` is 0.
 */
NARROWS_API struct narrows_cc *narrows_cc_create(const char *control, const char *settings,
						 char *error, size_t size);

NARROWS_API void narrows_cc_destroy(struct narrows_cc *cc);

/* The lowest number that no path has, or -1: all NARROWS_PATHS are in use. */
NARROWS_API int narrows_cc_unused(const struct narrows_cc *cc);

/* Reports an event of a path. Returns enum narrows_result; what is refused changes nothing. */
NARROWS_API int narrows_cc_event(struct narrows_cc *cc, uint32_t path,
				 const struct narrows_event *event);

/* Reads what a path may do; also for siblings of the path that had an event. */
NARROWS_API int narrows_cc_read(const struct narrows_cc *cc, uint32_t path,
				struct narrows_path *out);

#ifdef __cplusplus
}
#endif

#endif
