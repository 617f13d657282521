/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface of a slow start. It acts either at the join (the first window of a path) or at the
 * exit (how slow start grows and ends before a loss); one of each can be combined. The parameters
 * are the join's, the state is the exit's. Each header in start/ ends in a table; starts.def lists
 * them, starts.h calls them.
 */
#ifndef NARROWS_START_H
#define NARROWS_START_H

#include "param.h"
#include "path.h"

#define NR_STARTS_MAX 8

struct nr_start {
	const char *name;
	const char *code; /* its part of a control's name in the kernel, one character */
	const char *about;
	const char *source;
	const struct nr_param *param;
	nr_u32 params; /* number of parameters, at most NR_JOIN_PARAMS */
	nr_u32 state;  /* bytes of nr_private.start */

	/* The join: the first window, packets. Null: the host's. */
	nr_u32 (*initial)(NR_HOOK);

	/* The exit. `acked` returns 1 where slow start ends; null: only a loss ends it. */
	int (*acked)(NR_HOOK);
	/* Growth of the first slow start for `acked` packets, Q40 packets. Null: a packet each. */
	nr_s64 (*credit)(NR_HOOK, nr_u32 acked);
	void (*timeout)(NR_HOOK);
};

/* The first window that the host would begin with: RFC 6928's, unless it reports another. */
NR_INLINE nr_u32 nr_host_initial(const struct nr_event *ev)
{
	return ev->cwnd ? ev->cwnd : NR_INIT_CWND;
}

/* Defines the parameters of a join from a list (param.h), and nr_NAME_params(c), as for a law. */
#define NR_JOIN_PARAMETERS(name, list)                                                             \
	NR_PARAMS(name, list);                                                                     \
	NR_STATIC_ASSERT(sizeof(struct nr_##name##_params) <= sizeof(nr_u32[NR_JOIN_PARAMS]),      \
			 "slow start " #name ": more parameters than NR_JOIN_PARAMS");             \
	NR_INLINE const struct nr_##name##_params *nr_##name##_params(const struct nr_conn *c)     \
	{                                                                                          \
		return (const struct nr_##name##_params *)c->join;                                 \
	}

#define NR_START(name) static const struct nr_start nr_start_##name __attribute__((unused))

/* The state of a slow start, as for a law. */
#define NR_START_STATE(name)                                                                       \
	NR_STATIC_ASSERT(sizeof(struct nr_##name) <= sizeof(nr_u64[NR_START_WORDS]),               \
			 "slow start " #name ": its state is larger than NR_START_WORDS");         \
	NR_INLINE struct nr_##name *nr_##name(struct nr_private *p)                                \
	{                                                                                          \
		return (struct nr_##name *)p->start;                                               \
	}

#endif
