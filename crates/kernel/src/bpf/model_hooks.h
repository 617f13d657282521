/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hooks of a control whose law is a model law (law.h); part of control.bpf.c.
 *
 *   .cong_control   ACKED, with the stack's rate sample
 *   .set_state      RECOVERY, TIMEOUT, RECOVERED (from either), ECN
 *   .undo_cwnd      UNDO
 *   .cwnd_event     RESTART
 *   .ssthresh       only the fallback law's
 *   .sndbuf_expand  as Linux's BBR
 *
 * With .cong_control the stack leaves the window to the control also in recovery and after idle
 * time, except for the cut at a timeout, and the pacing rate always. What the law published is set
 * after each event. fq paces where it is the qdisc, else the stack's timer. No .min_tso_segs: it
 * would run at each transmission, for bursts of one segment and not two below 1.2 Mbit/s.
 */
#ifndef NR_MODEL_HOOKS_H
#define NR_MODEL_HOOKS_H

/* net/ipv4/tcp_bbr.c, bbr_sndbuf_expand(): windows in the send buffer. */
#define NR_SNDBUF_WINDOWS 3

/* Before Linux 6.10 it has neither `ack` nor `flag`. */
struct tcp_congestion_ops___6_10 {
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
} __attribute__((preserve_access_index));

static __always_inline bool is_valid(const struct rate_sample *rs)
{
	return rs->delivered > 0 && rs->interval_us > 0;
}

/* Was the sample's packet sent after this last returned true? */
static __always_inline bool begins_round(struct sock *sk, const struct rate_sample *rs)
{
	struct nr_sock *s = nr_sk(sk);

	if (!is_valid(rs) || (nr_s32)(rs->prior_delivered - s->round_end) < 0)
		return false;
	s->round_end = round_mark(tcp_sk(sk));
	return true;
}

/* Does the path run the fallback law? Looked at where a round is over. */
static __always_inline bool falls_back(struct sock *sk, struct nr_entry *e, bool round)
{
	return uncoupled(sk, &e->slot[nr_sk(sk)->slot & (NR_MAX_PATHS - 1)], round);
}

/*
 * Passes the event of the socket's slot on (nr_event), and sets what the law published; not where
 * the path runs the fallback law, and then false.
 */
static __always_inline bool model_event(struct sock *sk, struct nr_entry *e, bool acked, bool round)
{
	struct nr_path *path = line(e, nr_sk(sk)->slot);
	struct tcp_sock *tp = tcp_sk(sk);

	nr_event(sk, e, acked);
	if (falls_back(sk, e, round))
		return false;
	tp->snd_cwnd = path->cwnd < tp->snd_cwnd_clamp ? path->cwnd : tp->snd_cwnd_clamp;
	leave_cwnd(sk, tp->snd_cwnd);
	if (path->ssthresh != tp->snd_ssthresh)
		tp->snd_ssthresh = path->ssthresh;
	pace(sk, path->pacing_rate);
	return true;
}

/*
 * The fallback law is a window law. The window in recovery is ssthresh (RFC 6675, section 5), and
 * two windows a round trip are paced, as by the stack in slow start.
 */
static __always_inline void model_fallback(struct sock *sk, nr_u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_in_cwnd_reduction(sk)) {
		fallback(sk, acked);
	} else if (tp->snd_cwnd > tp->snd_ssthresh) {
		tp->snd_cwnd = tp->snd_ssthresh;
		leave_cwnd(sk, tp->snd_cwnd);
	}
	if (tp->srtt_us)
		pace(sk, 2 * 8000000ull * tp->mss_cache * tp->snd_cwnd / tp->srtt_us);
}

SEC("struct_ops")
void nr_cong_control(unsigned long long *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);
	const struct rate_sample *rs;
	struct nr_event *ev;
	struct nr_entry *e;
	bool round;

	if (bpf_core_type_matches(struct tcp_congestion_ops___6_10)) {
		rs = (void *)ctx[3];
		barrier_var(rs); /* the verifier wants constant offsets */
	} else {
		rs = (void *)ctx[1];
	}
	round = begins_round(sk, rs);
	keep_delay(sk, rs->rtt_us);
	e = entry(sk);
	if (!e) {
		if (round && mode(sk) == NR_MODE_FALLBACK && join(sk) == NR_JOINS)
			count(NR_COUPLED_LATER);
		else
			model_fallback(sk, rs->acked_sacked);
		return;
	}
	if (round)
		ensure_detection(e, s->token); /* there may be memory now */
	ev = fill_acked(sk, e);
	if (is_valid(rs)) {
		ev->sample_delivered = rs->delivered;
		ev->rate = 1000000ull * ev->mss * ev->sample_delivered / (nr_u64)rs->interval_us;
	}
	if (round)
		ev->flags |= NR_F_ROUND_START;
	if (tcp_ca_state(sk) == TCP_CA_Recovery)
		ev->flags |= NR_F_IN_RECOVERY;
	if (tcp_is_cwnd_limited(tp))
		ev->flags |= NR_F_CWND_LIMITED;
	if (rs->is_app_limited)
		ev->flags |= NR_F_APP_LIMITED;
	if (rs->is_retrans)
		ev->flags |= NR_F_RETRANS;
	if (tp->tcp_wstamp_ns > tp->tcp_clock_cache)
		ev->wait_us = (nr_u32)((tp->tcp_wstamp_ns - tp->tcp_clock_cache) / 1000);
	if (!model_event(sk, e, true, round))
		model_fallback(sk, rs->acked_sacked);
}

SEC("struct_ops")
__u32 BPF_PROG(nr_ssthresh, struct sock *sk)
{
	struct nr_entry *e = entry(sk);

	if (!e || falls_back(sk, e, false))
		return tcp_reno_ssthresh(sk);
	return line(e, nr_sk(sk)->slot)->ssthresh;
}

SEC("struct_ops")
void BPF_PROG(nr_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);
	nr_u32 old_state = tcp_ca_state(sk), kind;
	struct nr_event *ev;
	struct nr_entry *e;

	e = entry(sk);
	if (!e && mode(sk) == NR_MODE_FALLBACK)
		repair_cwnd(sk, NULL);
	/* Packets too large for the path are retransmitted in this state, at the same window. */
	if (new_state == TCP_CA_Loss && tp->snd_cwnd > tcp_packets_in_flight(tp) + 1)
		return;
	if (!e) {
		if (new_state >= TCP_CA_CWR && old_state < TCP_CA_CWR)
			repair_reno_ssthresh(sk);
		return;
	}
	if (new_state == TCP_CA_Loss)
		kind = NR_TIMEOUT;
	else if (new_state == TCP_CA_Recovery && old_state != TCP_CA_Recovery)
		kind = NR_RECOVERY;
	else if (new_state < TCP_CA_Recovery && old_state >= TCP_CA_Recovery)
		kind = NR_RECOVERED;
	else if (new_state == TCP_CA_CWR && tp->ecn_flags & TCP_ECN_OK)
		kind = NR_ECN;
	else
		return;
	ev = fill(sk, e, kind);
	if (kind == NR_TIMEOUT) {
		ev->cwnd = line(e, s->slot)->cwnd; /* the stack has cut its own */
		ev->lost = tp->lost - s->lost;
		s->lost = tp->lost;
		if (tp->inet_conn.icsk_retransmits) {
			ev->flags |= NR_F_RETRANS;
			ev->state = NR_FAILED;
		}
	}
	model_event(sk, e, false, false);
}

SEC("struct_ops")
__u32 BPF_PROG(nr_undo_cwnd, struct sock *sk)
{
	struct nr_entry *e = entry(sk);
	nr_u32 cwnd;

	if (!e || falls_back(sk, e, false)) {
		cwnd = tcp_reno_undo_cwnd(sk);
		leave_cwnd(sk, cwnd); /* the stack sets it */
		return cwnd;
	}
	fill(sk, e, NR_UNDO);
	model_event(sk, e, false, false);
	return tcp_sk(sk)->snd_cwnd;
}

SEC("struct_ops")
void BPF_PROG(nr_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nr_sock *s = nr_sk(sk);
	struct nr_event *ev;
	struct nr_entry *e;

	if (event != CA_EVENT_TX_START)
		return;
	/* A socket that only received and has no slot does not wait for an acknowledgement. */
	if (mode(sk) == NR_MODE_FALLBACK && join(sk) == NR_JOINS)
		count(NR_COUPLED_LATER);
	e = entry(sk);
	/* Also called for the first data, and for a retransmission of all that was in flight. */
	if (!e || !tp->data_segs_out || tp->packets_out)
		return;
	ev = fill(sk, e, NR_RESTART);
	ev->now_us = bpf_ktime_get_ns() / 1000;
	if (tp->app_limited || s->token) /* MPTCP does not set it */
		ev->flags |= NR_F_APP_LIMITED;
	model_event(sk, e, false, false);
}

SEC("struct_ops")
__u32 BPF_PROG(nr_sndbuf_expand, struct sock *sk)
{
	return NR_SNDBUF_WINDOWS;
}

#endif
