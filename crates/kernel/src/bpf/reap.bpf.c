// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Deletes entries that no path has any more: those of sockets whose release() was left out
 * (docs/guide/trouble.md). User space runs nr_find, waits, and runs nr_reap.
 *
 * A slot is in use if the socket that took it says so: its memory is that of a socket in use, and
 * its nr_sock names itself, the entry and the slot. That holds for every path from the end of
 * enter() to the beginning of nr_release(), whatever namespace it is in and whoever holds it, and
 * for nothing else. In enter() and nr_release() it does not hold for some instructions, so an entry
 * counts as left behind only if it was found so twice with the same word: meanwhile a path that was
 * joining has joined, and one that was leaving has changed the word. A slot that is left behind is
 * never given again, so that the second look is at the same paths.
 */
#include "conns.h"
#include "slots.h"

/* Entries of one run; user space runs it again after a full one. */
#define REAP_MAX 1024

struct found {
	nr_u64 word;
	nr_u32 token;
	nr_u32 reserved;
};

/* Which entries. */
struct which {
	nr_u32 detected; /* 1: those of which nr_detections has something */
};

struct taking {
	nr_u32 detected;
	nr_u32 reaped;
};

struct found found[REAP_MAX];
nr_u32 count;

/* slots.h can make entries; this makes none. */
static void nr_conn_begin(struct nr_conn *c)
{
}

static __always_inline bool in_use(struct nr_entry *e, nr_u32 token, nr_u32 slot)
{
	nr_u64 owner = e->slot[slot & (NR_MAX_PATHS - 1)].owner;
	struct tcp_sock *tp = (struct tcp_sock *)owner;
	struct nr_sock s;
	int users = 0;

	bpf_core_read(&users, sizeof(users),
		      &((struct sock *)tp)->__sk_common.skc_refcnt.refs.counter);
	if (!users || bpf_core_read(&s, sizeof(s), &tp->inet_conn.icsk_ca_priv))
		return false;
	return s.sk == owner && s.token == token && s.mode == NR_MODE_PATH && s.slot == slot;
}

/* Has it no path in its slots? One that is being made or deleted is somebody's. */
static __noinline int left_behind(struct nr_entry *e, nr_u32 token, nr_u64 word)
{
	if (!e || word & NR_WORD_CLOSED)
		return 0;
	for (nr_u32 slot = 0; slot < NR_MAX_PATHS; slot++)
		if (word >> slot & 1 && in_use(e, token, slot))
			return 0;
	return 1;
}

static __always_inline bool is_detected(nr_u32 token)
{
	return bpf_map_lookup_elem(&nr_detections, &token) != NULL;
}

static long look(void *map, const nr_u32 *key, struct nr_entry *e, const nr_u32 *detected)
{
	nr_u64 word = NR_READ(e->word);
	nr_u32 n = count, token = *key;

	if (!left_behind(e, token, word) || (*detected && !is_detected(token)))
		return 0;
	if (n >= REAP_MAX)
		return 1;
	found[n].token = token;
	found[n].word = word;
	count = n + 1;
	return 0;
}

/* Finds what may have been left behind; returns how many. */
SEC("syscall")
int nr_find(const struct which *which)
{
	nr_u32 detected = which->detected;

	count = 0;
	bpf_for_each_map_elem(&nr_conns, look, &detected, 0);
	return count;
}

static long take(nr_u32 n, struct taking *t)
{
	nr_u32 token;
	nr_u64 word;
	struct nr_entry *e;

	if (n >= REAP_MAX)
		return 1;
	token = found[n].token;
	word = found[n].word;
	e = nr_conns_lookup(&token);
	if (!e || NR_READ(e->word) != word || !left_behind(e, token, word))
		return 0;
	if (!t->detected || is_detected(token))
		t->reaped += nr_delete_entry(e, token, word);
	return 0;
}

/* Deletes those of them that still are; returns how many. */
SEC("syscall")
int nr_reap(const struct which *which)
{
	struct taking t = {.detected = which->detected};

	bpf_loop(count, take, &t, 0);
	return t.reaped;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
