// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes, for delays that change by 10 ms from one to the next, how far they are apart, us, and the
 * noise that a path publishes, us^2.
 */
#include "detect/deciding.h"
#include <stdio.h>

int main(void)
{
	static const nr_u32 apart_us[] = {5000, 20000, 60000, 120000, 240000};
	static const struct nr_xcorr_params params = {0};

	for (nr_u32 n = 0; n < sizeof(apart_us) / sizeof(*apart_us); n++) {
		static struct nr_xcorr path;

		nr_xcorr_reset(&path);
		for (nr_u32 k = 1; k <= 60000000 / apart_us[n]; k++) {
			struct nr_sample s = {
			    .now_us = (nr_u64)k * apart_us[n],
			    .delay_us = k % 2 ? 10000 : 20000,
			    .delivered = 1,
			    .sampled = 1,
			};

			nr_xcorr_sample(&params, &path, &s);
		}
		printf("%u %llu\n", apart_us[n],
		       (unsigned long long)nr_xcorr_unpack(
			   (nr_u32)(path.summary.base & NR_XCORR_NOISE)));
	}
	return 0;
}
