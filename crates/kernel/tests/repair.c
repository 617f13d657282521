// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "repair.h"

nr_u32 nr_test_cwnd_most(nr_u32 before, nr_u32 ssthresh, nr_u32 out);

nr_u32 nr_test_cwnd_most(nr_u32 before, nr_u32 ssthresh, nr_u32 out)
{
	return nr_cwnd_most(before, ssthresh, out);
}
