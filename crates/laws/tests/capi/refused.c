// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a stack may do wrong is refused and changes nothing. Prints the first that was not. */
#include <narrows_cc.h>

#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("line %d: expected %s\n", __LINE__, #condition);                    \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

int main(void)
{
	struct narrows_event event;
	struct narrows_path before, after;
	struct narrows_cc *cc = narrows_cc_create("olia", NULL, NULL, 0);
	char error[8] = "";

	memset(&event, 0, sizeof(event));
	EXPECT(narrows_cc_abi() == NARROWS_ABI);
	EXPECT(cc != NULL);
	EXPECT(narrows_cc_unused(cc) == 0);

	/* No path has joined. */
	event.kind = NARROWS_ACKED;
	event.state = NARROWS_ACTIVE;
	event.mss = 1200;
	event.delivered = 1;
	event.flags = NARROWS_F_CWND_LIMITED;
	EXPECT(narrows_cc_event(cc, 0, &event) == NARROWS_NO_PATH);
	EXPECT(narrows_cc_read(cc, 0, &after) == NARROWS_NO_PATH);

	event.kind = NARROWS_JOINED;
	event.state = NARROWS_JOINING;
	for (uint32_t path = 0; path < NARROWS_PATHS; path++) {
		EXPECT(narrows_cc_unused(cc) == (int)path);
		EXPECT(narrows_cc_event(cc, path, &event) == NARROWS_OK);
	}
	EXPECT(narrows_cc_unused(cc) == -1);
	EXPECT(narrows_cc_event(cc, NARROWS_PATHS, &event) == NARROWS_NO_PATH);
	EXPECT(narrows_cc_read(cc, NARROWS_PATHS, &after) == NARROWS_NO_PATH);

	EXPECT(narrows_cc_read(cc, 3, &before) == NARROWS_OK);
	EXPECT(before.cwnd == 10 && before.bytes == 12000 && before.coupled == 0xff);
	EXPECT(before.ssthresh == NARROWS_NO_SSTHRESH && before.place == NARROWS_UNDECIDED);
	event.kind = 0;
	EXPECT(narrows_cc_event(cc, 3, &event) == NARROWS_NO_EVENT);
	event.kind = NARROWS_LEFT + 1;
	EXPECT(narrows_cc_event(cc, 3, &event) == NARROWS_NO_EVENT);
	event.kind = NARROWS_ACKED;
	event.state = NARROWS_FREE;
	EXPECT(narrows_cc_event(cc, 3, &event) == NARROWS_NO_EVENT);
	event.state = NARROWS_FAILED + 1;
	EXPECT(narrows_cc_event(cc, 3, &event) == NARROWS_NO_EVENT);
	event.state = NARROWS_ACTIVE;
	event.mss = 0;
	EXPECT(narrows_cc_event(cc, 3, &event) == NARROWS_NO_EVENT);
	event.mss = ~0u;
	EXPECT(narrows_cc_event(cc, 3, &event) == NARROWS_NO_EVENT);
	EXPECT(narrows_cc_read(cc, 3, &after) == NARROWS_OK);
	EXPECT(!memcmp(&before, &after, sizeof(before)));

	/* And a right one does. */
	event.mss = 1200;
	EXPECT(narrows_cc_event(cc, 3, &event) == NARROWS_OK);
	EXPECT(narrows_cc_read(cc, 3, &after) == NARROWS_OK && after.cwnd == 11);

	memset(&event, 0, sizeof(event));
	event.kind = NARROWS_LEFT;
	EXPECT(narrows_cc_event(cc, 3, &event) == NARROWS_OK);
	EXPECT(narrows_cc_read(cc, 3, &after) == NARROWS_NO_PATH);
	EXPECT(narrows_cc_unused(cc) == 3);
	EXPECT(narrows_cc_read(cc, 0, &after) == NARROWS_OK && after.coupled == 0xf7);
	narrows_cc_destroy(cc);
	narrows_cc_destroy(NULL);

	/* The reason is cut to its room. */
	EXPECT(narrows_cc_create("nonsense", NULL, error, sizeof(error)) == NULL);
	EXPECT(!strcmp(error, "unknown"));
	EXPECT(narrows_cc_create(NULL, NULL, error, sizeof(error)) == NULL);
	return 0;
}
