// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Replays events through a law in the kernel: after the verifier and the JIT its results must equal
 * the native code's bit for bit. The programs have type syscall: user space starts them, and they
 * use no socket.
 *
 * ../replay.rs mirrors struct replay and struct run.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define NR_NOINLINE __attribute__((noinline))
#include "narrows.h"

/* Constant at load, so that the verifier prunes unused code. */
const volatile struct {
	nr_u32 detector;
	nr_u32 start;
	nr_u32 window[2];
	nr_u32 param[NR_LAW_PARAMS];
	nr_u32 join[NR_JOIN_PARAMS];
} control SEC(".rodata.control");

#define NR_ONE_DETECTOR control.detector
#include NR_LAW_HEADER
#include "nr.h"

#define STEPS 1024 /* events of one run */

/* One event of one path. */
struct step {
	struct nr_event event;
	nr_u32 path;
	nr_u32 reserved;
};

/* All that an event may change, except other paths' debits. */
struct outcome {
	nr_u64 masks;
	struct nr_private private;
	struct nr_path path;
};

/* The connection, the state of its detector and paths, and the replayed events. */
struct replay {
	struct nr_conn conn;
	struct nr_detection detection;
	struct nr_private private[NR_MAX_PATHS];
	struct step step[STEPS];
	struct outcome outcome[STEPS];
} replay;

struct run {
	nr_u64 elapsed_ns; /* out: from before the first event to after the last */
	nr_u64 steps;	   /* in: events to replay */
};

/* Runs step n, which is below STEPS, and returns its path. */
static __always_inline nr_u32 run_step(nr_u32 n)
{
	struct step *step = &replay.step[n];
	nr_u32 i = step->path & (NR_MAX_PATHS - 1);

	nr_on_event(control.detector, control.start, &replay.conn, &replay.detection, i,
		    &replay.private[i], &step->event);
	return i;
}

static long record(nr_u32 n, void *unused)
{
	nr_u32 i;

	if (n >= STEPS)
		return 1;
	i = run_step(n);
	replay.outcome[n].masks = replay.conn.masks;
	replay.outcome[n].private = replay.private[i];
	replay.outcome[n].path = replay.conn.path[i];
	return 0;
}

static long time(nr_u32 n, void *unused)
{
	if (n >= STEPS)
		return 1;
	run_step(n);
	return 0;
}

/*
 * Prepares the connection for its first event; user space has zeroed the memory, except the
 * detectors' parameters.
 */
SEC("syscall")
int nr_reset(void *unused)
{
	nr_conn_init(&replay.conn, NR_NUMBER, control.detector);
	for (nr_u32 n = 0; n < 2; n++)
		replay.conn.window[n] = control.window[n];
	for (nr_u32 n = 0; n < NR_LAW_PARAMS; n++)
		replay.conn.param[n] = control.param[n];
	for (nr_u32 n = 0; n < NR_JOIN_PARAMS; n++)
		replay.conn.join[n] = control.join[n];
	return 0;
}

/* Every event and what it changed. */
SEC("syscall")
int nr_replay(struct run *run)
{
	bpf_loop(run->steps, record, NULL, 0);
	return 0;
}

/* The same events, timed. */
SEC("syscall")
int nr_time(struct run *run)
{
	nr_u64 began = bpf_ktime_get_ns();

	bpf_loop(run->steps, time, NULL, 0);
	run->elapsed_ns = bpf_ktime_get_ns() - began;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
