// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A control for measurements: the kernel's Reno, called through BPF, and an empty program at every
 * acknowledgement, whose run time is the overhead of the kernel's statistics.
 */
#include "nr_kernel.h"

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

SEC("struct_ops")
void BPF_PROG(nr_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
}

SEC("struct_ops")
void BPF_PROG(nr_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(nr_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(nr_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops empty_ops = {
    .pkts_acked = (void *)nr_pkts_acked,
    .cong_avoid = (void *)nr_cong_avoid,
    .ssthresh = (void *)nr_ssthresh,
    .undo_cwnd = (void *)nr_undo_cwnd,
    .name = "nr_empty",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
