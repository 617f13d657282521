/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User-settable parameters of a law or a detector. Each is defined once, as a line in a list
 * of its header:
 *
 *   #define NR_TR_PARAMS(P)                                                                   \
 *     P(hold_us, hold_s, SECONDS, 60, 1, 512, "time that paths stay coupled, s", "section 5.2")
 *
 * with its field in C, name, unit, default, minimum and maximum in that unit, description, and
 * source. A field is one 32-bit word in the unit's scale.
 */
#ifndef NARROWS_PARAM_H
#define NARROWS_PARAM_H

#include "nr_port.h"

#define NR_Q16 65536 /* a ratio of 1 */

/* The unit of a parameter for users; in comments, the unit of its word. */
enum nr_unit {
	NR_UNIT_COUNT = 0, /* a whole number */
	NR_UNIT_RATIO,	   /* Q16 */
	NR_UNIT_SIGNED,	   /* a ratio that may be negative, Q16 */
	NR_UNIT_MS,	   /* us */
	NR_UNIT_MS_PER_S,  /* us/s */
	NR_UNIT_SECONDS,   /* us */
	NR_UNIT_SWITCH,	   /* off, on */
	NR_UNIT_COUPLE,	   /* enum nr_couple: none, undecided, all */
	NR_UNIT_SHARE,	   /* enum nr_share: none, han, published, group */
	NR_UNIT_DONOR,	   /* enum nr_lisa_donor: fastest, nearest */
};

typedef nr_u32 nr_word_COUNT, nr_word_RATIO, nr_word_MS, nr_word_MS_PER_S, nr_word_SECONDS,
    nr_word_SWITCH, nr_word_COUPLE, nr_word_SHARE, nr_word_DONOR;
typedef nr_s32 nr_word_SIGNED;

struct nr_param {
	const char *name;
	const char *about;
	const char *source;
	double value, low, high;
	nr_u32 unit; /* enum nr_unit */
};

#define NR_PARAM_FIELD(field, name, unit, ...) nr_word_##unit field;
#define NR_PARAM_ROW(field, name, unit, value, low, high, about, source)                           \
	{#name, about, source, value, low, high, NR_UNIT_##unit},

/* Defines struct nr_NAME_params, and the table that describes it, from a list. */
#define NR_PARAMS(name, list)                                                                      \
	struct nr_##name##_params {                                                                \
		list(NR_PARAM_FIELD)                                                               \
	};                                                                                         \
	static const struct nr_param nr_##name##_param[]                                           \
	    __attribute__((unused)) = {list(NR_PARAM_ROW)}

/* In the table of a law or detector: its parameters. */
#define NR_TAKES(name)                                                                             \
	.param = nr_##name##_param, .params = sizeof(nr_##name##_param) / sizeof(struct nr_param)

#endif
