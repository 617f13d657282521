/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of connections and paths that the controls share and user space reads; ../state.rs
 * mirrors these structs.
 *
 * A connection is an entry of the map nr_conns, keyed by its local MPTCP token, which is unique in
 * the kernel, over all network namespaces. A path is a slot of the entry. Plain TCP, and MPTCP that
 * fell back to it, has its entry in its socket's storage instead, so that it takes nothing from
 * others: the first slot of an entry without word and identities.
 *
 * An entry counts for a user, in the map nr_users, from its creation until its deletion, and one
 * user gets only a part of the map (nr_may_have).
 *
 * Entries are created and deleted while other CPUs look them up, and the memory of a deleted entry
 * may be reused for another connection at once. The ownership of slots is therefore in one word,
 * nr_entry.word, which changes only by compare-and-swap or fetch-and-and:
 *
 * - Create: the path whose insertion succeeded gets an entry that is CLOSED and has no token. It
 *   initialises the connection and opens it by CAS to its token, its control and its own bit. Only
 *   this path opens a new entry.
 *
 * - Join: CAS w -> w | bit from a word that is open, has the joiner's token and control, and lacks
 *   the bit. On success the entry belonged to this connection and was open at that moment, and with
 *   a bit set it remains so. The CAS fails if the memory has been reused.
 *
 * - Leave: clear the bit. If no bit is left, CAS to CLOSED, and on success (no join meanwhile)
 *   delete the entry. Exactly one path does this. If the kernel refuses, as the bucket's lock is
 *   already held on that CPU, the path opens the word again: the entry stays, for the connection's
 *   next path.
 *
 * A path that finds a CLOSED entry under its key retries a few times, then runs the fallback law
 * and retries a round trip later. slots.h has the code.
 */
#ifndef NR_STATE_H
#define NR_STATE_H

#include "detectors.h"
#include "path.h"

/*
 * Users' laws all have the number NR_LAW_USER. An entry also holds the build of its law, so that
 * two of them never share one.
 */
#ifndef NR_BUILD
#define NR_BUILD 0
#endif

/*
 * Connections, 4 kB each, allocated on demand. One user gets a fifth: 52,428 connections, 205 MB.
 */
#define NR_CONNS_MAX 262144

/*
 * Connections of which a detector keeps something: those with two paths or more, 32 kB each,
 * allocated on demand. One user gets a fifth, as of NR_CONNS_MAX. Without room a connection is
 * coupled as if all its paths shared, and tries again each round trip.
 */
#define NR_DETECTIONS_MAX 32768

/*
 * Users whose entries are counted apart: uids of 16 bits, and of the others each block of 65,536,
 * as subordinate uids and containers are given.
 */
#define NR_USER_BLOCK 65536
#define NR_USERS_MAX (2 * NR_USER_BLOCK)
#define NR_USERS_ALL NR_USER_BLOCK /* index of what all users have */
#define NR_USER_PLACE(uid) ((uid) < NR_USER_BLOCK ? (uid) : NR_USER_BLOCK + (uid) / NR_USER_BLOCK)

/* What a user has: entries of nr_conns and of nr_detections. */
struct nr_used {
	nr_u32 entries;
	nr_u32 detections;
};

/*
 * May a user who has `used` entries of the map have another one, if `free` are free? Not if he has
 * a quarter of the free ones or more. So one user gets a fifth of the map, a second one a fifth of
 * what the first has left, and so on: whoever takes what he can get leaves four fifths to others.
 */
NR_INLINE int nr_may_have(nr_u32 used, nr_u32 free)
{
	return (nr_u64)used * 4 < free;
}

/*
 * Round trips in a row that end with subflows outside the entry until the path runs the fallback
 * law: a subflow that is about to join, or leave, is outside at the end of one. Round trips of less
 * than NR_OUTSIDE_MS are looked at together, as the list of subflows takes a microsecond to read.
 */
#define NR_OUTSIDE_ROUNDS 2
#define NR_OUTSIDE_MS 100

/* struct nr_entry.word, from the low end: slots taken, flags, control, and the token on top. */
#define NR_WORD_SLOTS 0xffull
#define NR_WORD_CLOSED (1ull << 8) /* being created or deleted */
#define NR_WORD_VERSION(version) ((nr_u64)((version) & 63) << 10)
#define NR_WORD_LAW(law) ((nr_u64)((law) & 63) << 16)
#define NR_WORD_DETECTOR(detector) ((nr_u64)((detector) & 15) << 22)
#define NR_WORD_START(start) ((nr_u64)((start) & 63) << 26)
#define NR_WORD_TOKEN(token) ((nr_u64)(token) << 32)

/* Identity of a path, as in ss. Written once, at its join. */
struct nr_ident {
	nr_u32 saddr[4]; /* network order; IPv4 in the first word */
	nr_u32 daddr[4]; /* likewise */
	nr_u32 sport;	 /* host order */
	nr_u32 dport;	 /* host order */
	nr_u32 family;	 /* AF_INET or AF_INET6 */
	nr_u8 local_id;	 /* MPTCP address ids */
	nr_u8 remote_id;
	nr_u8 delay; /* enum nr_delay (clock.h); changes later */
	nr_u8 reserved;
};

/*
 * What an acknowledgement needs of its path. Not aligned to cache lines, as an entry must fit in 4
 * kB. The line that two slots share has the end of one's state, which few laws use, and the other's
 * owner, which seldom changes.
 */
struct nr_slot {
	nr_u64 owner;	       /* address of the socket that has the slot */
	nr_u32 outside;	       /* round trips in a row, at most NR_OUTSIDE_ROUNDS; see there */
	nr_u32 looked_ms;      /* when that was last looked at, wraps */
	struct nr_event event; /* the last one; BPF's stack is too small for it */
	struct nr_private private;
};

/* In practice the kernel aligns it to a cache line. */
struct nr_entry {
	nr_u64 word;
	nr_u32 user;  /* whose it is: a uid of the initial user namespace */
	nr_u32 netns; /* inode number of the network namespace */
	nr_u32 build; /* NR_BUILD of its maker */
	nr_u32 reserved;
	struct nr_conn conn;
	struct nr_slot slot[NR_MAX_PATHS];
	struct nr_ident ident[NR_MAX_PATHS];
};

/* Index into the map nr_counters. Each control has its own. */
enum nr_counter {
	NR_JOINS = 0,	     /* paths that got a slot at once */
	NR_LEAVES,	     /* paths that released their slot */
	NR_FALLBACK_LAW,     /* ran the fallback law: the connection has another control */
	NR_FALLBACK_VERSION, /* likewise: it has another layout */
	NR_FALLBACK_SLOTS,   /* likewise: it has no free slot */
	NR_FALLBACK_FULL,    /* likewise: the map, or memory, is full */
	NR_FALLBACK_USER,    /* likewise: its user has his part of the map */
	NR_FALLBACK_RACE,    /* likewise: the entry was being created or deleted */
	NR_FALLBACK_LOST,    /* likewise: the entry was deleted externally */
	NR_FALLBACK_OUTSIDE, /* likewise: its connection has subflows outside the entry */
	NR_COUPLED_LATER,    /* ran the fallback law, got a slot later */
	NR_TCP_FALLBACKS,    /* MPTCP was requested but not negotiated */
	NR_PLAIN,	     /* plain TCP and fallen-back sockets handed to another control */
	NR_ALONE,	     /* plain TCP and fallen-back sockets that ran as one path */
	NR_REPAIRED,	     /* repaired windows: the stack did not use a program's result */
	NR_REPAIRED_THRESH,  /* likewise thresholds, before they came into use */
	NR_UNDETECTED,	     /* paths that joined without room for what the detector keeps */
	NR_DECISIONS,	     /* of the detector */
	NR_REGROUPINGS,	     /* those of them that changed the group of a path */
	NR_COUNTERS,
};

#endif
