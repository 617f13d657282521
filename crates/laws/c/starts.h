/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The hooks of a control's slow start, by its number. */
#ifndef NARROWS_STARTS_H
#define NARROWS_STARTS_H

#include "start.h"
#include "starts.def"

#define NR_START_NUMBER(n, name) NR_START_##name = n,
enum nr_start_number { NR_STARTS(NR_START_NUMBER) };

/* A control's slow start: the part at the join of one, the part at the exit of another. */
NR_INLINE nr_u32 nr_start_join(nr_u32 start)
{
	return start >> 3 & 7;
}

NR_INLINE nr_u32 nr_start_exit(nr_u32 start)
{
	return start & 7;
}

#define NR_START_INITIAL(n, name)                                                                  \
	case n:                                                                                    \
		return nr_start_##name.initial ? nr_start_##name.initial(NR_ARGS)                  \
					       : nr_host_initial(ev);
#define NR_START_ACKED(n, name)                                                                    \
	case n:                                                                                    \
		return nr_start_##name.acked ? nr_start_##name.acked(NR_ARGS) : 0;
#define NR_START_GROWS(n, name)                                                                    \
	case n:                                                                                    \
		return !!nr_start_##name.credit;
#define NR_START_CREDIT(n, name)                                                                   \
	case n:                                                                                    \
		return nr_start_##name.credit ? nr_start_##name.credit(NR_ARGS, acked) : 0;
#define NR_START_TIMEOUT(n, name)                                                                  \
	case n:                                                                                    \
		if (nr_start_##name.timeout)                                                       \
			nr_start_##name.timeout(NR_ARGS);                                          \
		return;

/* The first window of a joining path, packets. */
NR_INLINE nr_u32 nr_start_initial(nr_u32 start, NR_HOOK)
{
	switch (nr_start_join(start)) {
		NR_STARTS(NR_START_INITIAL)
	}
	return nr_host_initial(ev);
}

/* Does slow start end at this acknowledgement, before a loss? */
NR_INLINE int nr_start_acked(nr_u32 start, NR_HOOK)
{
	switch (nr_start_exit(start)) {
		NR_STARTS(NR_START_ACKED)
	}
	return 0;
}

/* Has it a growth of its own for the first slow start, which knows no ssthresh? */
NR_INLINE int nr_start_grows(nr_u32 start)
{
	switch (nr_start_exit(start)) {
		NR_STARTS(NR_START_GROWS)
	}
	return 0;
}

/* That growth for `acked` packets, Q40 packets. */
NR_INLINE nr_s64 nr_start_credit(nr_u32 start, NR_HOOK, nr_u32 acked)
{
	switch (nr_start_exit(start)) {
		NR_STARTS(NR_START_CREDIT)
	}
	return 0;
}

NR_INLINE void nr_start_timeout(nr_u32 start, NR_HOOK)
{
	switch (nr_start_exit(start)) {
		NR_STARTS(NR_START_TIMEOUT)
	}
}

#endif
