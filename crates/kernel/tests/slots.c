// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* src/bpf/slots.h under loom's port, over the map of slots.rs. */
#include "port.h"

#define NR_STATIC_DETECTORS
#define NR_BUILD nr_build() /* of whoever runs now */
#define NR_JOIN_TRIES 2
#define NR_CLAIM_TRIES 2
#include <errno.h>
#include <stddef.h>

unsigned int nr_build(void);
#include "slots.h"

/* As slots.rs has it. */
NR_STATIC_ASSERT(!offsetof(struct nr_entry, word), "struct Entry");
NR_STATIC_ASSERT(offsetof(struct nr_entry, key) == 8, "struct Entry");
NR_STATIC_ASSERT(sizeof(struct nr_entry) <= 4096, "struct Entry");

struct nr_entry *nr_map_lookup(nr_u64 key);
int nr_map_insert(nr_u64 key);
int nr_map_delete(nr_u64 key);

static struct nr_entry *nr_conns_lookup(const nr_u64 *key)
{
	return nr_map_lookup(*key);
}

static long nr_conns_insert(const nr_u64 *key)
{
	return nr_map_insert(*key) ? 0 : -EEXIST;
}

static long nr_conns_delete(const nr_u64 *key)
{
	return nr_map_delete(*key) ? 0 : -EBUSY;
}

static void nr_conn_begin(struct nr_conn *c)
{
	nr_conn_init(c, 0, 0);
}
