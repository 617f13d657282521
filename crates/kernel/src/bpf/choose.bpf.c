// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Selects a congestion control for the sockets of a cgroup when their connection is established, on
 * both sides, and for subflows that the kernel opens later. Open connections are not changed. Where
 * it is for MPTCP only, plain TCP that has it from a listener gets the default back.
 */
#include "nr_kernel.h"

const volatile struct {
	char name[TCP_CA_NAME_MAX];
	__u32 mptcp_only;
} choice SEC(".rodata.choice");

/* Does the socket run the chosen control? */
static __always_inline bool runs_it(struct tcp_sock *tp)
{
	char name[TCP_CA_NAME_MAX] = {};

	BPF_CORE_READ_INTO(&name, tp, inet_conn.icsk_ca_ops, name);
	for (int i = 0; i < TCP_CA_NAME_MAX; i++)
		if (name[i] != choice.name[i])
			return false;
	return true;
}

SEC("sockops")
int nr_choose(struct bpf_sock_ops *ops)
{
	char name[TCP_CA_NAME_MAX];
	struct bpf_sock *sk = ops->sk;
	struct tcp_sock *tp;
	struct net *net;

	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (choice.mptcp_only) {
		tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
		if (!tp)
			return 1;
		if (!mptcp_token((struct sock *)tp)) {
			if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || !runs_it(tp))
				return 1;
			net = BPF_CORE_READ((struct sock *)tp, __sk_common.skc_net.net);
			BPF_CORE_READ_INTO(&name, net, ipv4.tcp_congestion_control, name);
			bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
			return 1;
		}
	}
	for (int i = 0; i < TCP_CA_NAME_MAX; i++)
		name[i] = choice.name[i];
	/* Fails if the control has been unloaded: the socket keeps its control. */
	bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
