// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Measures how long decisions take in a control that runs: attached to nr_watch_tick of one of its
 * programs. Calls that decided nothing are left out.
 */
#include "nr_kernel.h"
#include "detectors.h"

#define BIN_NS 100
#define BINS 2048 /* the last one: longer */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, nr_u32);
	__type(value, nr_u64);
} began SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BINS);
	__type(key, nr_u32);
	__type(value, nr_u64);
} times SEC(".maps");

SEC("fentry")
int BPF_PROG(nr_tick_begins)
{
	nr_u32 zero = 0;
	nr_u64 *at = bpf_map_lookup_elem(&began, &zero);

	if (at)
		*at = bpf_ktime_get_ns();
	return 0;
}

SEC("fexit")
int BPF_PROG(nr_tick_ends, nr_u32 detector, struct nr_conn *c, struct nr_watch *w, nr_u32 i,
	     nr_u64 now_us, int decided)
{
	nr_u64 now = bpf_ktime_get_ns(), *at, *time;
	nr_u32 bin = 0;

	at = bpf_map_lookup_elem(&began, &bin);
	if (!at || decided == NR_NOT_DECIDED)
		return 0;
	bin = (now - *at) / BIN_NS;
	if (bin >= BINS)
		bin = BINS - 1;
	time = bpf_map_lookup_elem(&times, &bin);
	if (time)
		__sync_fetch_and_add(time, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
