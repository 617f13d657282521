/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For ../../benches/cost, where one connection at a time is open: how many decisions took so long
 * from the claim to the answer, and of how many the longest part held an acknowledgement up for so
 * long. Without NR_TIME_DECISIONS nothing.
 */
#ifndef NR_DECISION_TIMES_H
#define NR_DECISION_TIMES_H

#include "nr_kernel.h"
#include "detectors.h"

#ifdef NR_TIME_DECISIONS
#define NR_HELD_NS 100
#define NR_ANSWERED_NS 10000
#define NR_TIMES 4096 /* the last one: longer */
#define NR_LOOPS 6000
struct nr_times {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_TIMES);
	__type(key, nr_u32);
	__type(value, nr_u64);
};
struct nr_times nr_longest SEC(".maps");
struct nr_times nr_answers SEC(".maps");
struct nr_times nr_loops SEC(".maps");
nr_u64 nr_longest_ns, nr_claimed_ns, nr_loop_ns;

static __always_inline void note_time(void *times, nr_u64 bin)
{
	nr_u32 at = bin < NR_TIMES ? bin : NR_TIMES - 1;
	nr_u64 *decisions = bpf_map_lookup_elem(times, &at);

	if (decisions)
		__sync_fetch_and_add(decisions, 1);
}

static __always_inline nr_u64 clock_ns(void)
{
	return bpf_ktime_get_ns();
}

/* Is a decision under way? */
static __always_inline bool at_hand(struct nr_detection *det)
{
	return det && NR_READ(det->stamp);
}

/* For comparison: a loop after each part, about as long as one, without memory. */
static __always_inline nr_u64 loop(void)
{
	nr_u64 began_ns = bpf_ktime_get_ns(), x = began_ns;

	for (nr_u32 n = 0; n < NR_LOOPS; n++)
		asm volatile("%0 *= 5" : "+r"(x));
	return bpf_ktime_get_ns() - began_ns;
}

/* Of two CPUs at once the shorter time may get lost. */
static __always_inline void keep_longest(nr_u64 *longest, nr_u64 ns)
{
	nr_u64 before = *longest;

	if (ns > before && __sync_val_compare_and_swap(longest, before, ns) < ns)
		*longest = ns;
}

/*
 * The detector's part of an acknowledgement is over. Before it, `were` says if a decision was under
 * way.
 */
static __always_inline void note_times(struct nr_detection *det, nr_u64 began_ns, bool were,
				       nr_u32 decided)
{
	nr_u64 now_ns = bpf_ktime_get_ns();

	if (!were && !at_hand(det))
		return;
	if (!were)
		nr_claimed_ns = began_ns;
	keep_longest(&nr_longest_ns, now_ns - began_ns);
	keep_longest(&nr_loop_ns, loop());
	if (decided == NR_NOT_DECIDED)
		return;
	note_time(&nr_longest, nr_longest_ns / NR_HELD_NS);
	note_time(&nr_answers, (now_ns - nr_claimed_ns) / NR_ANSWERED_NS);
	note_time(&nr_loops, nr_loop_ns / NR_HELD_NS);
	nr_longest_ns = nr_loop_ns = 0;
}
#else
static __always_inline nr_u64 clock_ns(void)
{
	return 0;
}

static __always_inline bool at_hand(struct nr_detection *det)
{
	return false;
}

static __always_inline void note_times(struct nr_detection *det, nr_u64 began_ns, bool were,
				       nr_u32 decided)
{
}
#endif

#endif
