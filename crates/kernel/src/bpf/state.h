/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of connections and paths that the controls share and user space reads; ../state.rs has
 * the twins.
 *
 * A connection is an entry of the map nr_conns, keyed by its local MPTCP token (which is unique in
 * the kernel, over all network namespaces), or by a socket's address and NR_KEY_ALONE where one
 * path is all there is. A path is a slot of the entry.
 *
 * Entries come and go while other CPUs look them up, and the memory of a deleted entry may be
 * another connection's a moment later. So all that decides who owns a slot stands in one word,
 * nr_entry.word, which changes by compare-and-swap or fetch-and-and only:
 *
 * - Made by the one whose insertion succeeded, CLOSED and without token. It initialises the
 *   connection and opens it by CAS to its token, its control and a bit for itself. Nobody else
 *   opens a new entry.
 *
 * - Joined by CAS w -> w | bit from a word that is open, has the joiner's token and control, and
 *   lacks the bit. Success means: at that moment it was this connection's and alive, and with a bit
 *   set it stays so. The CAS fails if the memory has become another's.
 *
 * - Left by clearing the bit. Whoever finds no bit left tries CAS to CLOSED, and if that succeeds
 *   (nobody joined meanwhile) deletes the entry. One does, once. Where the kernel refuses, as the
 *   bucket's lock is held on that CPU already, it opens the word again: the entry stays, for the
 *   connection's next path.
 *
 * Who finds a CLOSED entry under its key looks again some times, then runs the fallback law and
 * tries again a round trip later. The steps stand in slots.h.
 */
#ifndef NR_STATE_H
#define NR_STATE_H

#include "detectors.h"
#include "path.h"

#define NR_CONNS_MAX 65536 /* connections; memory is taken as they come, 4 kB each */

/* In a key: a socket's address, not a token. Most kernels' addresses have the bit anyway. */
#define NR_KEY_ALONE (1ull << 63)

/* struct nr_entry.word, from the low end: slots taken, flags, control, and the token on top. */
#define NR_WORD_SLOTS 0xffull
#define NR_WORD_CLOSED (1ull << 8) /* being made, or deleted */
#define NR_WORD_ALONE (1ull << 9)  /* one path, no other may join */
#define NR_WORD_VERSION(version) ((nr_u64)((version) & 63) << 10)
#define NR_WORD_LAW(law) ((nr_u64)((law) & 63) << 16)
#define NR_WORD_DETECTOR(detector) ((nr_u64)((detector) & 15) << 22)
#define NR_WORD_START(start) ((nr_u64)((start) & 63) << 26)
#define NR_WORD_TOKEN(token) ((nr_u64)(token) << 32)

/* Who a path is, in the words of ss. Written once, by its join. */
struct nr_ident {
	nr_u32 saddr[4]; /* network order; IPv4 in the first word */
	nr_u32 daddr[4]; /* likewise */
	nr_u32 sport;	 /* host order */
	nr_u32 dport;	 /* host order */
	nr_u32 family;	 /* AF_INET or AF_INET6 */
	nr_u8 local_id;	 /* MPTCP address ids */
	nr_u8 remote_id;
	nr_u8 reserved[2];
};

/* What an acknowledgement needs of its own path alone, in as few cache lines as can be. */
struct nr_slot {
	struct nr_event event; /* the last one; BPF's stack is too small for it */
	struct nr_private private;
	nr_u64 owner; /* address of the socket that has the slot */
} __attribute__((aligned(64)));

/* The kernel happens to put it at the beginning of a cache line. */
struct nr_entry {
	nr_u64 word;
	nr_u64 key;   /* its own key in the map */
	nr_u32 netns; /* inode number of the network namespace */
	nr_u32 reserved;
	struct nr_conn conn;
	struct nr_slot slot[NR_MAX_PATHS];
	struct nr_ident ident[NR_MAX_PATHS];
};

/* Index into the map nr_counters. Each control has its own. */
enum nr_counter {
	NR_JOINS = 0,	     /* paths that got a slot at once */
	NR_LEAVES,	     /* and gave it back */
	NR_FALLBACK_LAW,     /* ran the fallback law: the connection was another control's */
	NR_FALLBACK_VERSION, /* of another layout */
	NR_FALLBACK_SLOTS,   /* had no slot left */
	NR_FALLBACK_FULL,    /* the map, or the memory for it, was full */
	NR_FALLBACK_RACE,    /* the entry was being made or deleted */
	NR_FALLBACK_LOST,    /* the entry was deleted from outside */
	NR_COUPLED_LATER,    /* ran the fallback law, got a slot later */
	NR_TCP_FALLBACKS,    /* MPTCP was asked for and not agreed on */
	NR_PLAIN,	     /* plain TCP and fallen-back sockets handed to another control */
	NR_ALONE,	     /* plain TCP and fallen-back sockets that ran as one path */
	NR_REPAIRED,	     /* the stack took up another window than a program had returned */
	NR_COUNTERS,
};

#endif
