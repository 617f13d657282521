/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shared accesses of c/nr_port.h as a model checker sees them: calls into port.rs, which hands
 * them to loom. Included before any other header. All functions become external, so that a test
 * calls those of the headers themselves.
 *
 * A word that the test has not shared is plain memory, and the value passed or kept here is it.
 */
#ifndef NR_LOOM_PORT_H
#define NR_LOOM_PORT_H

unsigned long long nr_loom_load(const volatile void *word, unsigned long long plain);
int nr_loom_store(volatile void *word, unsigned long long value);
unsigned long long nr_loom_cas(volatile void *word, unsigned long long old, unsigned long long new);
unsigned long long nr_loom_and(volatile void *word, unsigned long long keep);
void nr_loom_acquire(void);
void nr_loom_release(void);

#define NR_INLINE
#define NR_NOINLINE

/* __typeof__ of a sum, to lose a const. */
#define NR_READ(x) ((__typeof__((x) + 0))nr_loom_load(&(x), (x)))
#define NR_WRITE(x, v)                                                                             \
	do {                                                                                       \
		__typeof__(x) nr_value = (v);                                                      \
		if (!nr_loom_store(&(x), nr_value))                                                \
			(x) = nr_value;                                                            \
	} while (0)
#define NR_CAS(ptr, old, new)                                                                      \
	((__typeof__(*(ptr)))nr_loom_cas(ptr, (__typeof__(*(ptr)))(old), (__typeof__(*(ptr)))(new)))
#define NR_FETCH_AND(ptr, keep) ((__typeof__(*(ptr)))nr_loom_and(ptr, (__typeof__(*(ptr)))(keep)))
#define NR_READ_BARRIER() nr_loom_acquire()
#define NR_WRITE_BARRIER() nr_loom_release()

#endif
