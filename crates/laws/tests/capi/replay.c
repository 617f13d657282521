// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * replay CONTROL SETTINGS: events from standard input, each after the number of its path as a word
 * of 64 bits; after each what its path may do goes to standard output, all zero once it has left.
 */
#include <narrows_cc.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct {
		uint64_t path;
		struct narrows_event event;
	} next;
	char error[160];
	struct narrows_cc *cc;

	if (argc != 3)
		return 2;
	cc = narrows_cc_create(argv[1], argv[2], error, sizeof(error));
	if (!cc) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	while (fread(&next, sizeof(next), 1, stdin) == 1) {
		struct narrows_path path;
		int result;

		memset(&path, 0, sizeof(path));
		result = narrows_cc_event(cc, (uint32_t)next.path, &next.event);
		if (result != NARROWS_OK) {
			fprintf(stderr, "event refused: %d\n", result);
			return 1;
		}
		narrows_cc_read(cc, (uint32_t)next.path, &path);
		if (fwrite(&path, sizeof(path), 1, stdout) != 1)
			return 1;
	}
	narrows_cc_destroy(cc);
	return 0;
}
