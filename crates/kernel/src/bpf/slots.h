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
static struct nr_entry *nr_conns_lookup(const nr_u64 *key);
static long nr_conns_insert(const nr_u64 *key);
static long nr_conns_delete(const nr_u64 *key);
/* Initialises a connection without paths under the includer's control. */
static void nr_conn_begin(struct nr_conn *c);

/* Releases a slot of the entry of `key`, and deletes the entry if it was the last. */
NR_INLINE void nr_leave_slot(struct nr_entry *e, nr_u64 key, nr_u32 slot)
{
	nr_u64 w = ~(1ull << (slot & (NR_MAX_PATHS - 1)));

	w &= NR_FETCH_AND(&e->word, w);
	if (!(w & NR_WORD_SLOTS) && NR_CAS(&e->word, w, w | NR_WORD_CLOSED) == w &&
	    nr_conns_delete(&key)) /* its bucket is busy */
		NR_CAS(&e->word, w | NR_WORD_CLOSED, w);
}

/* Takes a slot of an open entry of this connection; returns it, or -1 and sets *reason. */
NR_INLINE int nr_claim_slot(struct nr_entry *e, nr_u64 mine, nr_u32 *reason)
{
	for (nr_u32 try = 0; try < NR_CLAIM_TRIES; try++) {
		nr_u64 w = NR_READ(e->word), differs = w ^ mine;
		nr_u32 slot = 0;

		*reason = NR_FALLBACK_RACE;
		if (w & NR_WORD_CLOSED || differs >> 32)
			return -1;
		/* One that could not be deleted is taken again. */
		if (w & NR_WORD_ALONE && w & NR_WORD_SLOTS)
			return -1;
		*reason = NR_FALLBACK_VERSION;
		if (differs & NR_WORD_VERSION(~0))
			return -1;
		*reason = NR_FALLBACK_LAW;
		if (differs & ~NR_WORD_SLOTS)
			return -1;
		*reason = NR_FALLBACK_SLOTS;
		for (nr_u32 i = NR_MAX_PATHS; i-- > 0;)
			if (!(w >> i & 1))
				slot = i;
		if (w >> slot & 1)
			return -1;
		if (NR_CAS(&e->word, w, w | 1ull << slot) != w)
			continue;
		if (NR_READ(e->build) == NR_BUILD)
			return slot;
		nr_leave_slot(e, NR_READ(e->key), slot);
		*reason = NR_FALLBACK_LAW;
		return -1;
	}
	*reason = NR_FALLBACK_RACE;
	return -1;
}

/*
 * Finds or creates the entry of `key` and takes a slot in it; or returns null and sets *reason.
 * `mine` is the word, without slots, of an entry that the path may join.
 */
NR_INLINE struct nr_entry *nr_take_slot(nr_u64 key, nr_u64 mine, nr_u32 *slot, nr_u32 *reason)
{
	for (nr_u32 try = 0; try < NR_JOIN_TRIES; try++) {
		struct nr_entry *e = nr_conns_lookup(&key);
		long taken, error;

		if (e) {
			taken = nr_claim_slot(e, mine, reason);
			if (taken >= 0) {
				*slot = taken;
				return e;
			}
			if (*reason != NR_FALLBACK_RACE)
				return NULL;
			continue;
		}
		error = nr_conns_insert(&key);
		*reason = error && error != -EEXIST ? NR_FALLBACK_FULL : NR_FALLBACK_RACE;
		if (error)
			continue;
		e = nr_conns_lookup(&key);
		if (!e)
			continue;
		nr_conn_begin(&e->conn);
		NR_WRITE(e->key, key);
		NR_WRITE(e->build, NR_BUILD);
		*slot = 0;
		if (NR_CAS(&e->word, NR_WORD_CLOSED, mine | 1) == NR_WORD_CLOSED)
			return e;
	}
	return NULL;
}

#endif
