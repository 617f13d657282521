/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface of a law: a table of facts and hooks at the end of its header.
 *
 *   NR_LAW(mine) = {
 *       .name = "mine", .code = "mine",
 *       .about = "one line for `narrows list`", .source = "where it is specified",
 *       .kind = NR_WINDOW, .couples = 1,
 *       .credit = nr_mine_credit,
 *   };
 *
 * Generic code (window.h) reads the table as a constant, so that hooks are inlined and a missing
 * hook costs nothing. laws.def lists the laws.
 */
#ifndef NARROWS_LAW_H
#define NARROWS_LAW_H

#include "param.h"
#include "path.h"
#include "starts.h"

enum nr_law_kind {
	NR_WINDOW = 0, /* gives growth per acknowledged packet and ssthresh at a congestion event */
	NR_MODEL,      /* sets cwnd and pacing rate at every event, and publishes nr_path.bw */
};

/* Numbers of laws are below this. */
#define NR_LAWS_MAX 64
/* The number of a law that is loaded at run time. */
#define NR_LAW_USER (NR_LAWS_MAX - 1)

struct nr_law {
	const char *name;
	const char *code;   /* its part of a control's name in the kernel, at most 5 characters */
	const char *about;  /* one line */
	const char *source; /* where it is specified */
	const struct nr_param *param;
	nr_u32 params;	/* number of parameters, at most NR_LAW_PARAMS */
	nr_u32 kind;	/* enum nr_law_kind */
	nr_u32 couples; /* 1: reads the siblings in its mask */
	nr_u32 start;	/* enum nr_start_number: its default exit of slow start */
	nr_u32 state;	/* bytes in nr_private.law */
	nr_u32 alone;	/* 1: `credit` also without siblings; 0: Reno there, if coupled */
	nr_u32 by_time; /* 1: grows with time or round trips: window.count_acks does not apply */
	nr_u32 pairs;	/* 1: small windows of a group are even; window.h */
	/*
	 * 1: `credit` is called if the path's window or mask has changed, and once a round trip.
	 * For growth that depends on windows, round-trip times and published words only; others
	 * then affect it up to a round trip later, as RFC 6356 allows. It is kept in the last
	 * NR_KEPT_WORDS of nr_private.law, which `state` leaves free. 0: for each acknowledgement.
	 */
	nr_u32 per_round;
	/* 1: a scalable control (RFC 9331): marks take another share of the window than losses. */
	nr_u32 scales;

	/*
	 * Window laws. All may be null. `credit` is the growth per acknowledged packet in
	 * congestion avoidance, Q40 packets; `set` are the paths in the mask that count, as bits
	 * (nr_coupled; 0 for an uncoupled law); *n is the number of packets, to be lowered if the
	 * growth holds for fewer. Null: Reno's.
	 */
	nr_s64 (*credit)(NR_HOOK, nr_u32 set, nr_u32 *n);
	nr_u32 (*ssthresh)(NR_HOOK); /* at a congestion event; null: Reno's */
	void (*joined)(NR_HOOK);     /* the path is new; its state is zero */
	void (*before)(NR_HOOK);     /* any event, with the host's windows: what siblings did */
	void (*acked)(NR_HOOK);	     /* each acknowledgement, also in recovery */
	void (*begin)(NR_HOOK);	     /* congestion avoidance is about to grow */
	void (*grown)(NR_HOOK, nr_u32 cwnd, nr_u32 n); /* by n packets, at cwnd */
	void (*lost)(NR_HOOK);	  /* after a reduction; p->cwnd is from before */
	void (*undo)(NR_HOOK);	  /* that reduction was spurious */
	void (*timeout)(NR_HOOK); /* after the reduction, if there was one */
	void (*restart)(NR_HOOK); /* data after idle, which reduced the window */
	/* Packets had `before` bytes, and have others from now on; windows that the law keeps. */
	void (*resized)(NR_HOOK, nr_u32 before);

	/* Model laws, instead of all above. */
	void (*event)(NR_HOOK);
};

/* The growth per acknowledged packet of a law with per_round. */
struct nr_kept {
	nr_s64 credit; /* Q40 packets */
	nr_u64 us;     /* when it was computed */
	nr_u32 cwnd;   /* at which window; 0: not yet */
	nr_u32 mask;   /* with which masks */
};
#define NR_KEPT_WORDS (sizeof(struct nr_kept) / sizeof(nr_u64))

#define NR_LAW(name) static const struct nr_law nr_law_##name __attribute__((unused))

/*
 * The law's state, all zero when a path joins: `struct nr_NAME`, at most NR_LAW_WORDS words of 64
 * bits, returned by nr_NAME(p).
 */
#define NR_LAW_STATE(name)                                                                         \
	NR_STATIC_ASSERT(sizeof(struct nr_##name) <= sizeof(nr_u64[NR_LAW_WORDS]),                 \
			 "law " #name ": its state is larger than NR_LAW_WORDS");                  \
	NR_INLINE struct nr_##name *nr_##name(struct nr_private *p)                                \
	{                                                                                          \
		return (struct nr_##name *)p->law;                                                 \
	}

/* Defines the law's parameters from a list (param.h), and nr_NAME_params(c), which returns them. */
#define NR_LAW_PARAMETERS(name, list)                                                              \
	NR_PARAMS(name, list);                                                                     \
	NR_STATIC_ASSERT(sizeof(struct nr_##name##_params) <= sizeof(nr_u32[NR_LAW_PARAMS]),       \
			 "law " #name ": more parameters than NR_LAW_PARAMS");                     \
	NR_INLINE const struct nr_##name##_params *nr_##name##_params(const struct nr_conn *c)     \
	{                                                                                          \
		return (const struct nr_##name##_params *)c->param;                                \
	}

/* Parameters of all window laws. */
#define NR_WINDOW_PARAMS(P)                                                                        \
	P(at_ssthresh, slow_start_at_ssthresh, SWITCH, 0, 0, 1,                                    \
	  "slow start also at cwnd = ssthresh, as in Linux before 4.3",                            \
	  "RFC 5681, section 3.1, leaves it open; Linux commit 76174004a0f1")                      \
	P(count_acks, count_acks, SWITCH, 0, 0, 1,                                                 \
	  "congestion avoidance counts acknowledgements, not packets, as in Linux before 4.0",     \
	  "RFC 5681, section 3.1, equation 3; Linux commit \"fix stretch ACK bugs in Reno\"")
NR_PARAMS(window, NR_WINDOW_PARAMS);
NR_STATIC_ASSERT(sizeof(struct nr_window_params) <= sizeof(((struct nr_conn *)0)->window),
		 "more parameters of window laws than room");

#define NR_PASTE_(a, b) a##b
#define NR_PASTE(a, b) NR_PASTE_(a, b)

/*
 * The law of this translation unit: NR_THIS is its name, NR_NUMBER its number, NR_LAW_HEADER its
 * file.
 */
#define nr_this NR_PASTE(nr_law_, NR_THIS)

#endif
