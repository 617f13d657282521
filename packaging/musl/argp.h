/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What elfutils' library of helpers asks of <argp.h>, which musl has not: names to compile with.
 * libelf uses none of it, so nothing is behind them. For scripts/static.
 */
#ifndef _ARGP_H
#define _ARGP_H 1

#include <errno.h>
#include <stdio.h>

typedef int error_t;
struct argp_state {
	char *name;
};

struct argp_option {
	const char *name;
	int key;
	const char *arg;
	int flags;
	const char *doc;
	int group;
};

struct argp_child;
struct argp {
	const struct argp_option *options;
	error_t (*parser)(int key, char *arg, struct argp_state *state);
	const char *args_doc;
	const char *doc;
	const struct argp_child *children;
	char *(*help_filter)(int key, const char *text, void *input);
	const char *argp_domain;
};
void argp_help(const struct argp *argp, FILE *to, unsigned flags, char *name);

#define OPTION_ARG_OPTIONAL 1
#define ARGP_HELP_SEE 4
#define ARGP_ERR_UNKNOWN E2BIG

#endif
