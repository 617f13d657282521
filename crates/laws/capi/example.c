// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A sender with two paths that share one bottleneck: what a stack does with the library. The
 * network here is a link of 20 Mbit/s with a queue of 50 packets, 20 ms from end to end and back;
 * both paths send a window of packets each round trip, and the queue drops what is too much.
 *
 *   example [CONTROL [SETTINGS]]
 */
#include <narrows_cc.h>

#include <stdio.h>

#define PATHS 2
#define MSS 1200
#define RTT_US 20000
#define QUEUE 50
/* Packets that the link carries in a round trip. */
#define PIPE (20000000 / 8 / MSS * RTT_US / 1000000)

/* What the stack keeps of a path. */
struct path {
	uint64_t delivered; /* packets */
	uint32_t cwnd;
	uint32_t ssthresh;
	uint32_t srtt8_us;
	int recovering;
};

/* Reports an event, and does what the library says. */
static void report(struct narrows_cc *cc, uint32_t number, struct path *path,
		   struct narrows_event event)
{
	struct narrows_path now;

	event.mss = MSS;
	event.cwnd = path->cwnd;
	event.ssthresh = path->ssthresh;
	event.srtt8_us = path->srtt8_us;
	if (narrows_cc_event(cc, number, &event) || narrows_cc_read(cc, number, &now)) {
		fprintf(stderr, "example: the library refused event %u\n", event.kind);
		return;
	}
	path->cwnd = now.cwnd;
	path->ssthresh = now.ssthresh;
}

/* A round trip of one path: what it sent arrives, less what the queue dropped. */
static void round_trip(struct narrows_cc *cc, uint32_t number, struct path *path, uint64_t now_us,
		       uint32_t rtt_us, uint32_t lost)
{
	struct narrows_event event = {
	    .now_us = now_us,
	    .sent_us = now_us - rtt_us,
	    .kind = NARROWS_ACKED,
	    .state = NARROWS_ACTIVE,
	    .flags = NARROWS_F_CWND_LIMITED | NARROWS_F_ROUND_START,
	    .rtt_us = rtt_us,
	};
	uint32_t sent = path->cwnd;

	path->srtt8_us = path->srtt8_us ? path->srtt8_us - path->srtt8_us / 8 + rtt_us : 8 * rtt_us;
	path->delivered += sent - lost;
	if (path->recovering) {
		path->recovering = 0;
		report(cc, number, path,
		       (struct narrows_event){.now_us = now_us,
					      .kind = NARROWS_RECOVERED,
					      .state = NARROWS_ACTIVE,
					      .inflight = sent});
	}
	/* An acknowledgement for two packets each, as receivers send them. */
	for (uint32_t left = sent - lost; left; left -= event.delivered) {
		event.delivered = left < 2 ? left : 2;
		event.inflight = left - event.delivered;
		event.rate = (uint64_t)(sent - lost) * MSS * 1000000 / rtt_us;
		event.sample_delivered = sent - lost;
		report(cc, number, path, event);
		event.flags &= ~(uint32_t)NARROWS_F_ROUND_START;
	}
	if (lost) {
		path->recovering = 1;
		report(cc, number, path,
		       (struct narrows_event){.now_us = now_us,
					      .sent_us = now_us - rtt_us,
					      .kind = NARROWS_RECOVERY,
					      .state = NARROWS_ACTIVE,
					      .lost = lost,
					      .inflight = sent - lost});
	}
}

int main(int argc, char **argv)
{
	const char *control = argc > 1 ? argv[1] : "lia", *settings = argc > 2 ? argv[2] : NULL;
	struct path path[PATHS] = {{0}};
	uint64_t now_us = 1000000, all = 0;
	uint32_t rounds = 0;
	char error[160];
	struct narrows_cc *cc;

	if (narrows_cc_abi() != NARROWS_ABI) {
		fprintf(stderr, "example: the library has ABI %u, the header %u\n",
			narrows_cc_abi(), NARROWS_ABI);
		return 2;
	}
	cc = narrows_cc_create(control, settings, error, sizeof(error));
	if (!cc) {
		fprintf(stderr, "example: %s\n", error);
		return 2;
	}
	for (uint32_t i = 0; i < PATHS; i++) {
		report(cc, i, &path[i],
		       (struct narrows_event){
			   .now_us = now_us, .kind = NARROWS_JOINED, .state = NARROWS_JOINING});
	}
	for (; now_us < 60000000; rounds++) {
		uint32_t sent = path[0].cwnd + path[1].cwnd;
		uint32_t queued = sent > PIPE ? sent - PIPE : 0;
		uint32_t dropped = queued > QUEUE ? queued - QUEUE : 0;
		uint32_t rtt_us = RTT_US + RTT_US * (queued - dropped) / PIPE;

		now_us += rtt_us;
		/* The queue drops packets of the one, then of the other. */
		for (uint32_t n = 0; n < PATHS; n++) {
			uint32_t i = (rounds + n) % PATHS, sent_by = path[i].cwnd;
			uint32_t lost = dropped < sent_by ? dropped : sent_by;

			dropped -= lost;
			round_trip(cc, i, &path[i], now_us, rtt_us, lost);
		}
	}
	for (uint32_t i = 0; i < PATHS; i++) {
		struct narrows_path out;

		all += path[i].delivered;
		narrows_cc_read(cc, i, &out);
		printf("path %u: %.2f Mbit/s, window %u packets, coupled with paths 0x%x\n", i,
		       (double)path[i].delivered * MSS * 8 / 59e6, out.cwnd, out.coupled);
	}
	printf("%s: %.2f of 20 Mbit/s\n", control, (double)all * MSS * 8 / 59e6);
	narrows_cc_destroy(cc);
	return 0;
}
