/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The map of connections in the kernel, and what a socket keeps of its slot: for the controls, and
 * the programs beside them.
 */
#ifndef NR_CONNS_H
#define NR_CONNS_H

#include "nr_kernel.h"
#include "ack_thinning.h"
#include "clock.h"
#include "state.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NR_CONNS_MAX);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, nr_u32);
	__type(value, struct nr_entry);
} nr_conns SEC(".maps");

/* What each user has, and all together. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_USERS_MAX);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, nr_u32);
	__type(value, struct nr_used);
} nr_users SEC(".maps");

#ifndef NR_STATIC_DETECTORS
/* What a detector keeps of a connection, keyed as nr_conns; its entry is deleted after it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NR_DETECTIONS_MAX);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, nr_u32);
	__type(value, struct nr_detection);
} nr_detections SEC(".maps");

/* With what the map adds, key and links, as the kernel's allocator rounds up to a power of two. */
NR_STATIC_ASSERT(sizeof(struct nr_detection) + 64 <= 32768,
		 "an entry of nr_detections takes 64 kB");
#endif

static const struct nr_entry nr_unborn = {.word = NR_WORD_CLOSED};

static __always_inline struct nr_entry *nr_conns_lookup(const nr_u32 *token)
{
	return bpf_map_lookup_elem(&nr_conns, token);
}

static __always_inline long nr_conns_insert(const nr_u32 *token)
{
	return bpf_map_update_elem(&nr_conns, token, &nr_unborn, BPF_NOEXIST);
}

/* A count in nr_users, by its offset in struct nr_used. */
static __always_inline nr_u32 *nr_used(nr_u32 index, nr_u32 offset)
{
	void *used = bpf_map_lookup_elem(&nr_users, &index);

	return used ? used + offset : NULL;
}

/* May this user have one more of what a map has room for `max` of? */
static __always_inline bool nr_user_may_add(nr_u32 user, nr_u32 offset, nr_u32 max)
{
	nr_u32 *used = nr_used(NR_USER_PLACE(user), offset);
	nr_u32 *all = nr_used(NR_USERS_ALL, offset);
	nr_u32 taken;

	if (!used || !all)
		return false;
	taken = NR_READ(*all);
	return nr_may_have(NR_READ(*used), taken < max ? max - taken : 0);
}

/* What is taken away of a map that was not counted here does not make less than nothing. */
static __always_inline void nr_count(nr_u32 *count, nr_s32 more)
{
	if ((nr_s32)__sync_fetch_and_add(count, more) + more < 0)
		__sync_fetch_and_add(count, -more);
}

static __always_inline void nr_user_counts(nr_u32 user, nr_u32 offset, nr_s32 more)
{
	nr_u32 *used = nr_used(NR_USER_PLACE(user), offset);
	nr_u32 *all = nr_used(NR_USERS_ALL, offset);

	if (!used || !all)
		return;
	nr_count(used, more);
	nr_count(all, more);
}

#ifndef NR_STATIC_DETECTORS
static __always_inline bool nr_user_may_detect(nr_u32 user)
{
	return nr_user_may_add(user, __builtin_offsetof(struct nr_used, detections),
			       ((struct bpf_map *)&nr_detections)->max_entries);
}

static __always_inline void nr_user_detections(nr_u32 user, nr_s32 detections)
{
	nr_user_counts(user, __builtin_offsetof(struct nr_used, detections), detections);
}

static __always_inline long nr_detections_delete(const nr_u32 *token, nr_u32 user)
{
	long error = bpf_map_delete_elem(&nr_detections, token);

	if (!error)
		nr_user_detections(user, -1);
	return error == -ENOENT ? 0 : error;
}
#else
static __always_inline long nr_detections_delete(const nr_u32 *token, nr_u32 user)
{
	return 0;
}
#endif

static __always_inline long nr_conns_delete(const nr_u32 *token, nr_u32 user)
{
	long error = nr_detections_delete(token, user);

	return error ? error : bpf_map_delete_elem(&nr_conns, token);
}

static __always_inline int nr_user_may(nr_u32 user)
{
	return nr_user_may_add(user, __builtin_offsetof(struct nr_used, entries),
			       ((struct bpf_map *)&nr_conns)->max_entries);
}

static __always_inline void nr_user_adds(nr_u32 user, nr_s32 entries)
{
	nr_user_counts(user, __builtin_offsetof(struct nr_used, entries), entries);
}

enum nr_mode {
	NR_MODE_NONE = 0,
	NR_MODE_PATH,	  /* has a slot of its connection's entry */
	NR_MODE_ALONE,	  /* has an entry of its own, on one path */
	NR_MODE_FALLBACK, /* has no slot: fallback law */
};

/* Per-socket state, in icsk_ca_priv. */
struct nr_sock {
	nr_u64 sk;    /* address of the socket: invalid in a child's copy of its listener's state */
	nr_u32 token; /* of its connection; 0: plain TCP, or fallen back to it */
	nr_u32 mode;
	nr_u32 slot;
	nr_u32 delivered; /* tp->delivered as last reported to the law; likewise the next two */
	nr_u32 lost;
	nr_u32 marked;
	nr_u32 rtt_us;	  /* sample not reported yet */
	nr_u32 round_end; /* a round ends when this is acknowledged; model laws: tp->delivered */
	nr_u32 cwnd;	  /* as a program last left it, or found it right; 0: none since init */
	nr_u32 undone;	  /* 1: a reduction was, and the state is still the old one */
	struct nr_ack_thinning thinning;
	struct nr_clock clock; /* of its peer, if the detector wants one-way delays */
};
NR_STATIC_ASSERT(sizeof(struct nr_sock) <= 104, "ICSK_CA_PRIV_SIZE");

#endif
