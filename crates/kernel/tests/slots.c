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
NR_STATIC_ASSERT(offsetof(struct nr_entry, user) == 8, "struct Entry");
NR_STATIC_ASSERT(sizeof(struct nr_entry) <= 4096, "struct Entry");

struct nr_entry *nr_map_lookup(nr_u32 token);
int nr_map_insert(nr_u32 token);
int nr_map_delete(nr_u32 token);
nr_u32 nr_users_max(void);
nr_u32 nr_users_of(nr_u32 user);
nr_u32 nr_users_all(void);
void nr_users_add(nr_u32 user, nr_s32 entries);

static struct nr_entry *nr_conns_lookup(const nr_u32 *token)
{
	return nr_map_lookup(*token);
}

static long nr_conns_insert(const nr_u32 *token)
{
	return nr_map_insert(*token) ? 0 : -EEXIST;
}

static long nr_conns_delete(const nr_u32 *token, nr_u32 user)
{
	(void)user;
	return nr_map_delete(*token) ? 0 : -EBUSY;
}

static int nr_user_may(nr_u32 user)
{
	return nr_may_have(nr_users_of(user), nr_users_max() - nr_users_all());
}

static void nr_user_adds(nr_u32 user, nr_s32 entries)
{
	nr_users_add(user, entries);
}

static void nr_conn_begin(struct nr_conn *c)
{
	nr_conn_init(c, 0, 0);
}
