// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "trial.h"

nr_u32 nr_test_log2(nr_u64 x);
nr_u64 nr_test_siphash(nr_u64 k0, nr_u64 k1, nr_u64 a, nr_u64 b);
nr_u64 nr_test_boundary2(nr_u64 n, nr_u32 planned);
nr_u32 nr_test_broken(const struct nr_trial_result *result, const struct nr_trial_guards *guards);
void nr_test_count(struct nr_trial_arm *arm, const struct nr_outcome *o);

nr_u32 nr_test_log2(nr_u64 x)
{
	return nr_log2(x);
}

nr_u64 nr_test_siphash(nr_u64 k0, nr_u64 k1, nr_u64 a, nr_u64 b)
{
	return nr_siphash(k0, k1, a, b);
}

nr_u64 nr_test_boundary2(nr_u64 n, nr_u32 planned)
{
	return nr_trial_boundary2(n, planned);
}

nr_u32 nr_test_broken(const struct nr_trial_result *result, const struct nr_trial_guards *guards)
{
	return nr_trial_broken(result, guards);
}

void nr_test_count(struct nr_trial_arm *arm, const struct nr_outcome *o)
{
	nr_trial_count(arm, o);
}
