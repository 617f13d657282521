// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads answers on the pairs of eight members, a line of 28 digits (enum nr_answer), and writes the
 * members' places and, as bits, the members that each is known to share with.
 */
#include "detect/deciding.h"
#include <stdio.h>
#include <string.h>

int main(void)
{
	static struct nr_xcorr_pairs g;
	static struct nr_scratch d;
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		memset(&g, 0, sizeof(g));
		memset(&d, 0, sizeof(d));
		g.known = 0xff;
		for (nr_u32 n = 0; n < NR_XCORR_PAIRS; n++)
			g.pair[n].known.answer = (nr_u32)(line[n] - '0');
		nr_xcorr_group(&g, &d);
		for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
			printf("%u ", d.place[i]);
		for (nr_u32 i = 0; i < NR_DETECT_MAX; i++)
			printf("%u ", (nr_u32)(d.known >> (8 * i) & 0xff));
		printf("\n");
	}
	return 0;
}
