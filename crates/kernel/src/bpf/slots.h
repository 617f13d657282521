/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ownership of slots, as described in state.h. Independent of the kernel: the includer provides the
 * map and EEXIST, so that ../../tests/slots.rs can run these functions in every interleaving.
 */
#ifndef NR_SLOTS_H
#define NR_SLOTS_H

#include "state.h"

#ifndef NR_JOIN_TRIES /* the model checker uses fewer */
#define NR_JOIN_TRIES 4
#define NR_CLAIM_TRIES 8
#endif

/* The map nr_conns. Inserts an absent key, CLOSED; returns 0 or a negative error. */
static struct nr_entry *nr_conns_lookup(const nr_u32 *token);
static long nr_conns_insert(const nr_u32 *token);
static long nr_conns_delete(const nr_u32 *token, nr_u32 user);
/* May this user have another entry (nr_may_have)? */
static int nr_user_may(nr_u32 user);
/* Adds an entry to those of the user and of all, or with -1 takes it away. */
static void nr_user_adds(nr_u32 user, nr_s32 entries);
/* Initialises a connection without paths under the includer's control. */
static void nr_conn_begin(struct nr_conn *c);

/*
 * Deletes a connection's entry if its word still is `w`, whose slots nobody uses; 1: it is deleted.
 */
NR_INLINE int nr_delete_entry(struct nr_entry *e, nr_u32 token, nr_u64 w)
{
	nr_u32 user;

	if (NR_CAS(&e->word, w, w | NR_WORD_CLOSED) != w)
		return 0;
	user = NR_READ(e->user);
	if (nr_conns_delete(&token, user)) { /* its bucket is busy */
		NR_CAS(&e->word, w | NR_WORD_CLOSED, w);
		return 0;
	}
	nr_user_adds(user, -1);
	return 1;
}

/* Releases a slot of the connection's entry, and deletes the entry if it was the last. */
NR_NOINLINE int nr_leave_slot(struct nr_entry *e, nr_u32 token, nr_u32 slot)
{
	nr_u64 w = ~(1ull << (slot & (NR_MAX_PATHS - 1)));

	if (!e)
		return 0;
	w &= NR_FETCH_AND(&e->word, w);
	if (!(w & NR_WORD_SLOTS))
		nr_delete_entry(e, token, w);
	return 1;
}

/*
 * The lowest slot that is free in the word; NR_MAX_PATHS: none. Counts the ones below it, without
 * branches: the verifier would follow each of them, in every try of nr_claim_slot.
 */
NR_INLINE nr_u32 nr_free_slot(nr_u64 w)
{
	nr_u32 ones = w & ~(w + 1) & NR_WORD_SLOTS;

	ones -= ones >> 1 & 0x55;
	ones = (ones & 0x33) + (ones >> 2 & 0x33);
	return (ones + (ones >> 4)) & 0xf;
}

/* Takes a slot of an open entry of this connection; returns it, or the reason, negative. */
NR_NOINLINE int nr_claim_slot(struct nr_entry *e, nr_u64 mine)
{
	if (!e)
		return -NR_FALLBACK_RACE;
	for (nr_u32 try = 0; try < NR_CLAIM_TRIES; try++) {
		nr_u64 w = NR_READ(e->word), differs = w ^ mine;
		nr_u32 slot = nr_free_slot(w);

		if (w & NR_WORD_CLOSED || differs >> 32)
			return -NR_FALLBACK_RACE;
		if (differs & NR_WORD_VERSION(~0))
			return -NR_FALLBACK_VERSION;
		if (differs & ~NR_WORD_SLOTS)
			return -NR_FALLBACK_LAW;
		if (slot >= NR_MAX_PATHS)
			return -NR_FALLBACK_SLOTS;
		if (NR_CAS(&e->word, w, w | 1ull << slot) != w)
			continue;
		if (NR_READ(e->build) == NR_BUILD)
			return slot;
		nr_leave_slot(e, mine >> 32, slot);
		return -NR_FALLBACK_LAW;
	}
	return -NR_FALLBACK_RACE;
}

/*
 * Finds or creates the entry of a connection and takes a slot in it; or returns null and sets
 * *reason. `mine` is the word, without slots, of an entry that the path may join; `user` is whose
 * entry a new one is.
 */
NR_INLINE struct nr_entry *nr_take_slot(nr_u64 mine, nr_u32 user, nr_u32 *slot, nr_u32 *reason)
{
	nr_u32 token = mine >> 32;

	for (nr_u32 try = 0; try < NR_JOIN_TRIES; try++) {
		struct nr_entry *e = nr_conns_lookup(&token);
		long taken, error;

		if (e) {
			taken = nr_claim_slot(e, mine);
			if (taken >= 0) {
				*slot = taken;
				return e;
			}
			*reason = -taken;
			if (*reason != NR_FALLBACK_RACE)
				return NULL;
			continue;
		}
		*reason = NR_FALLBACK_USER;
		if (!nr_user_may(user))
			return NULL;
		error = nr_conns_insert(&token);
		*reason = error && error != -EEXIST ? NR_FALLBACK_FULL : NR_FALLBACK_RACE;
		if (error)
			continue;
		e = nr_conns_lookup(&token);
		if (!e)
			continue;
		nr_conn_begin(&e->conn);
		NR_WRITE(e->user, user);
		NR_WRITE(e->build, NR_BUILD);
		nr_user_adds(user, 1);
		*slot = 0;
		if (NR_CAS(&e->word, NR_WORD_CLOSED, mine | 1) == NR_WORD_CLOSED)
			return e;
		nr_user_adds(user, -1);
	}
	return NULL;
}

#endif
