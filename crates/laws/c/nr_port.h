/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compiler dependencies: fixed-width integers, single-word shared accesses and compare-and-swap.
 * The only header that uses builtins; everything else is freestanding C11.
 */
#ifndef NR_PORT_H
#define NR_PORT_H

typedef unsigned char nr_u8;
typedef unsigned short nr_u16;
typedef unsigned int nr_u32;
typedef unsigned long long nr_u64;
typedef int nr_s32;
typedef long long nr_s64;

#ifndef NR_INLINE
#define NR_INLINE static inline __attribute__((always_inline, unused))
#endif

/*
 * For the most expensive functions. A host may define it first: in BPF they are global functions,
 * which the verifier checks once in each program that calls them, and not on every path through
 * their callers, as it takes their results as unknown. They return a scalar and test their pointers
 * for null, as the verifier requires.
 */
#ifndef NR_NOINLINE
#define NR_NOINLINE static inline __attribute__((unused))
#endif

#define NR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NR_STATIC_ASSERT(cond, msg) _Static_assert(cond, msg)

/*
 * Shared words. The model checker predefines NR_READ and the macros below, to see every access
 * (../tests/loom/port.h).
 */
#ifndef NR_READ

/* Published words: one load, one store, never torn, never invented, no ordering. */
#define NR_READ(x) (*(const volatile __typeof__(x) *)&(x))
#define NR_WRITE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

/* Compare and swap; returns the old value. A full barrier if it succeeds. */
#define NR_CAS(ptr, old, new) __sync_val_compare_and_swap(ptr, old, new)

/* Clears all bits except `keep`; returns the old value. A full barrier. */
#define NR_FETCH_AND(ptr, keep) __sync_fetch_and_and(ptr, keep)

/*
 * Keeps the load before it ahead of the load after it. BPF has no fence, but its atomics that
 * return a value are full barriers on every machine.
 */
#ifdef __BPF__
#define NR_READ_BARRIER()                                                                          \
	do {                                                                                       \
		nr_u32 nr_fence = 0;                                                               \
		(void)__sync_lock_test_and_set(&nr_fence, 1);                                      \
	} while (0)
#else
#define NR_READ_BARRIER() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* Keeps the store before it ahead of the store after it. */
#ifdef __BPF__
#define NR_WRITE_BARRIER() NR_READ_BARRIER()
#else
#define NR_WRITE_BARRIER() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif

#endif /* NR_READ */

/*
 * A compiler barrier: memory is read again after it. For loops in BPF: the verifier takes a value
 * read from memory as unknown, so all paths through a step end in the same state and the next step
 * is explored once.
 */
#ifdef __BPF__
#define NR_FORGET() __asm__ volatile("" ::: "memory")
#else
#define NR_FORGET()
#endif

/*
 * `value`, instead of an argument: for one that is not used at all clang passes nothing, which
 * BPF's verifier refuses.
 */
#define NR_INSTEAD(argument, value)                                                                \
	({                                                                                         \
		__asm__ volatile("" : : "r"(argument));                                            \
		value;                                                                             \
	})

/* Leading zeros; x is not 0. */
#define NR_CLZ64(x) __builtin_clzll(x)

/* Ones in x. */
#define NR_ONES64(x) __builtin_popcountll(x)

#define NR_OFFSETOF(type, member) __builtin_offsetof(type, member)

#endif
