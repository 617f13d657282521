// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The C library. An event takes the way that it takes in Rust (src/conn.rs): the detector, then the
 * law. Here are names and settings as text, and the connection's memory.
 */
#include "narrows_cc.h"
#include "../c/detectors.h"
#include "../c/laws.def"
#include "../c/module.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAME_FIELD(field)                                                                          \
	NR_STATIC_ASSERT(offsetof(struct narrows_event, field) ==                                  \
			     offsetof(struct nr_event, field),                                     \
			 "narrows_event is nr_event")
NR_STATIC_ASSERT(sizeof(struct narrows_event) == sizeof(struct nr_event),
		 "narrows_event is nr_event");
SAME_FIELD(now_us);
SAME_FIELD(sent_us);
SAME_FIELD(rate);
SAME_FIELD(kind);
SAME_FIELD(flags);
SAME_FIELD(state);
SAME_FIELD(delivered);
SAME_FIELD(lost);
SAME_FIELD(marked);
SAME_FIELD(rtt_us);
SAME_FIELD(owd_us);
SAME_FIELD(dwell_us);
SAME_FIELD(inflight);
SAME_FIELD(sample_inflight);
SAME_FIELD(sample_delivered);
SAME_FIELD(sample_lost);
SAME_FIELD(cwnd);
SAME_FIELD(ssthresh);
SAME_FIELD(srtt8_us);
SAME_FIELD(mss);
SAME_FIELD(wait_us);
#define SAME_NUMBER(name)                                                                          \
	NR_STATIC_ASSERT((nr_u32)NARROWS_##name == (nr_u32)NR_##name, "NARROWS_" #name)
SAME_NUMBER(JOINED);
SAME_NUMBER(ACKED);
SAME_NUMBER(RECOVERY);
SAME_NUMBER(RECOVERED);
SAME_NUMBER(TIMEOUT);
SAME_NUMBER(UNDO);
SAME_NUMBER(ECN);
SAME_NUMBER(RESTART);
SAME_NUMBER(LEFT);
SAME_NUMBER(FREE);
SAME_NUMBER(JOINING);
SAME_NUMBER(ACTIVE);
SAME_NUMBER(IDLE);
SAME_NUMBER(BACKUP);
SAME_NUMBER(FAILED);
SAME_NUMBER(F_CWND_LIMITED);
SAME_NUMBER(F_APP_LIMITED);
SAME_NUMBER(F_IN_RECOVERY);
SAME_NUMBER(F_ROUND_START);
SAME_NUMBER(F_RETRANS);
SAME_NUMBER(F_OWD);
SAME_NUMBER(F_DWELL);
SAME_NUMBER(F_PACED);
SAME_NUMBER(F_SRTT);
SAME_NUMBER(F_NO_DELAY);
SAME_NUMBER(F_RESIZED);
SAME_NUMBER(ADVICE_NONE);
SAME_NUMBER(ADVICE_BACKUP);
SAME_NUMBER(ADVICE_CLOSE);
SAME_NUMBER(CLEAR);
SAME_NUMBER(UNDECIDED);
NR_STATIC_ASSERT(NARROWS_PATHS == NR_MAX_PATHS, "NARROWS_PATHS");
NR_STATIC_ASSERT(NARROWS_NO_SSTHRESH == NR_SSTHRESH_MAX, "NARROWS_NO_SSTHRESH");

/* What programs were compiled with. */
#define LAYOUT(abi, type, size, last, at)                                                          \
	NR_STATIC_ASSERT(NARROWS_ABI == (abi) && sizeof(struct type) == (size) &&                  \
			     offsetof(struct type, last) == (at),                                  \
			 "another " #type ": raise NARROWS_ABI, and set LAYOUT")
LAYOUT(1, narrows_event, 96, wait_us, 92);
LAYOUT(1, narrows_path, 56, place, 52);

/* Largest MSS: the fraction of a packet times it fits in 63 bits. */
#define MSS_MAX (1u << 20)

/* native.c */
const struct nr_module *narrows_law(nr_u32 number);
const struct nr_start *narrows_start(nr_u32 number);
const struct nr_detector *narrows_detector(nr_u32 number);
const struct nr_param *narrows_decision_param(nr_u32 n);
const struct nr_param *narrows_window_param(nr_u32 n);
void narrows_conn_init(struct nr_conn *c, nr_u32 law, nr_u32 detector, const nr_u32 *window,
		       const nr_u32 *param, const nr_u32 *join);
void narrows_detection_init(struct nr_detection *det, const struct nr_params *p);
void narrows_detect(nr_u32 detector, struct nr_conn *c, struct nr_detection *det, nr_u32 i,
		    const struct nr_event *ev);

/* Of a control and its settings. */
struct choice {
	const struct nr_module *module;
	const struct nr_detector *detector;
	const struct nr_start *join;
	const struct nr_start *exit;
	nr_u32 law, detector_number, join_number, exit_number;
	nr_u32 window[2], param[NR_LAW_PARAMS], of_join[NR_JOIN_PARAMS];
	struct nr_params of_detector;
};

struct narrows_cc {
	const struct nr_module *module;
	nr_u32 detector, start;
	struct nr_detection *detection; /* of a detector that decides, else null */
	struct nr_conn conn;
	struct nr_private path[NR_MAX_PATHS];
};

/* Where the reason goes. Returns 0, so that a refusal is one line. */
struct reason {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reason *reason,
							const char *format, ...)
{
	va_list values;

	va_start(values, format);
	if (reason->size)
		vsnprintf(reason->text, reason->size, format, values);
	va_end(values);
	return 0;
}

/* A piece of the caller's text. */
struct word {
	const char *at;
	int length;
};

static int is(struct word word, const char *name)
{
	return strlen(name) == (size_t)word.length && !memcmp(word.at, name, (size_t)word.length);
}

/* For a message, on one line: a name of ours has no such characters. */
static struct word shown(struct word word)
{
	int n = 0;

	while (n < word.length && n < 40 && word.at[n] > ' ' && word.at[n] < 127)
		n++;
	word.length = n;
	return word;
}

/* Takes "+NAME" off the end of a control's name; slow starts themselves end with plus signs. */
static int takes(struct word *rest, const char *name)
{
	int length = (int)strlen(name), at = rest->length - length;

	if (at < 1 || rest->at[at - 1] != '+' || memcmp(rest->at + at, name, (size_t)length) != 0)
		return 0;
	rest->length = at - 1;
	return 1;
}

/* The slow start that a control's name ends with, if it does. */
static const struct nr_start *last_start(struct word *rest, nr_u32 *number)
{
	for (*number = 0; *number < NR_STARTS_MAX; ++*number) {
		const struct nr_start *start = narrows_start(*number);

		if (start && takes(rest, start->name))
			return start;
	}
	return NULL;
}

static int find_law(struct choice *c, struct word name)
{
	for (c->law = 0; c->law < NR_LAWS_MAX; c->law++) {
		c->module = narrows_law(c->law);
		if (c->module && is(name, c->module->law->name))
			return 1;
	}
	return 0;
}

static int find_detector(struct choice *c, struct word name)
{
	for (c->detector_number = 0; c->detector_number < NR_DETECTORS_MAX; c->detector_number++) {
		c->detector = narrows_detector(c->detector_number);
		if (c->detector && is(name, c->detector->name))
			return 1;
	}
	return 0;
}

/* Do the parts work together? As Control::fault of src/control.rs. */
static int fits(const struct choice *c, const struct reason *reason)
{
	const struct nr_law *law = c->module->law;

	if (law->kind == NR_MODEL && (c->join_number || c->exit_number))
		return refuse(reason, "slow start '%s' is for window laws; '%s' has its own",
			      c->join_number ? c->join->name : c->exit->name, law->name);
	if (c->detector->measures == NR_BY_BANDWIDTH && law->kind != NR_MODEL)
		return refuse(
		    reason,
		    "detector '%s' uses the bandwidth estimate of a model law; '%s' has none",
		    c->detector->name, law->name);
	return 1;
}

/* LAW[+DETECTOR][+JOIN][+EXIT] */
static int choose(struct choice *c, const char *control, const struct reason *reason)
{
	size_t length = strlen(control);
	struct word rest = {control, length < 256 ? (int)length : 256}, law, detector = {NULL, 0};
	const struct nr_start *start;
	const char *plus;
	nr_u32 number;
	int joins = 0, exits = 0;

	c->join = narrows_start(0);
	while ((start = last_start(&rest, &number)) != NULL) {
		if (start->initial ? joins++ : exits++)
			return refuse(reason, "two slow starts for the join or for the exit; "
					      "expected at most one for each");
		if (start->initial) {
			c->join = start;
			c->join_number = number;
		} else {
			c->exit = start;
			c->exit_number = number;
		}
	}
	law = rest;
	plus = memchr(rest.at, '+', (size_t)rest.length);
	if (plus) {
		law.length = (int)(plus - rest.at);
		detector = (struct word){plus + 1, rest.length - law.length - 1};
	}
	if (!find_law(c, law))
		return refuse(reason, "unknown law '%.*s'; expected LAW[+DETECTOR][+START]",
			      shown(law).length, law.at);
	if (plus ? !find_detector(c, detector)
		 : !find_detector(c, c->module->law->couples ? (struct word){"shared", 6}
							     : (struct word){"disjoint", 8}))
		return refuse(reason, "unknown detector or slow start '%.*s'",
			      shown(detector).length, detector.at);
	if (!exits)
		c->exit_number = c->module->law->start;
	c->exit = narrows_start(c->exit_number);
	return fits(c, reason);
}

/* Words kept for a value of 1. */
static double scale(nr_u32 unit)
{
	switch (unit) {
	case NR_UNIT_RATIO:
	case NR_UNIT_SIGNED:
		return NR_Q16;
	case NR_UNIT_MS:
	case NR_UNIT_MS_PER_S:
		return 1e3;
	case NR_UNIT_SECONDS:
		return 1e6;
	default:
		return 1;
	}
}

static nr_u32 kept(const struct nr_param *row, double value)
{
	double scaled = value * scale(row->unit);

	return (nr_u32)(nr_s64)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

/* A decimal number of at most 15 digits, whatever the locale. */
static int number(struct word text, double *value)
{
	nr_u64 digits = 0, one = 1;
	int n = 0, count = 0, point = 0, minus = text.length > 0 && text.at[0] == '-';

	for (n = minus; n < text.length; n++) {
		if (text.at[n] == '.' && !point) {
			point = 1;
			continue;
		}
		if (text.at[n] < '0' || text.at[n] > '9' || count++ == 15)
			return 0;
		digits = 10 * digits + (nr_u64)(text.at[n] - '0');
		if (point)
			one *= 10;
	}
	*value = (double)digits / (double)one;
	if (minus)
		*value = -*value;
	return count > 0;
}

/* The words of a parameter that is a choice; null: it is a number. */
static const char *const *choices(nr_u32 unit)
{
	static const char *const SWITCH[] = {"off", "on", NULL};
	static const char *const COUPLE[] = {"none", "undecided", "all", NULL};
	static const char *const SHARE[] = {"none", "han", "published", "group", NULL};
	static const char *const DONOR[] = {"fastest", "nearest", NULL};

	switch (unit) {
	case NR_UNIT_SWITCH:
		return SWITCH;
	case NR_UNIT_COUPLE:
		return COUPLE;
	case NR_UNIT_SHARE:
		return SHARE;
	case NR_UNIT_DONOR:
		return DONOR;
	default:
		return NULL;
	}
}

/* Sets a parameter; 0: the value is not one of its. */
static int set(const struct nr_param *row, nr_u32 *word, struct word text)
{
	const char *const *choice = choices(row->unit);
	double value;

	for (nr_u32 n = 0; choice && choice[n]; n++) {
		if (is(text, choice[n])) {
			*word = n;
			return 1;
		}
	}
	if (choice || !number(text, &value) || value < row->low || value > row->high)
		return 0;
	if (row->unit == NR_UNIT_COUNT && value != (double)(nr_u32)value)
		return 0;
	*word = kept(row, value);
	return 1;
}

/* A group of parameters of a control: `window.`, `decision.`, and those of its parts. */
struct group {
	const char *name;
	const struct nr_param *row;
	nr_u32 rows;
	nr_u32 *word;
};

#define GROUPS 5

static nr_u32 rows_of(const struct nr_param *(*row)(nr_u32 n))
{
	nr_u32 n = 0;

	while (row(n))
		n++;
	return n;
}

/* The first word of a detector's parameters: those of decisions come first, then in their order. */
static nr_u32 *words_of_detector(struct choice *c)
{
	nr_u32 at = rows_of(narrows_decision_param);

	for (nr_u32 n = 0; n < c->detector_number; n++)
		at += narrows_detector(n) ? narrows_detector(n)->params : 0;
	return &c->of_detector.word[at];
}

static void groups(struct choice *c, struct group group[GROUPS])
{
	const struct nr_law *law = c->module->law;

	group[0] = (struct group){law->name, law->param, law->params, c->param};
	group[1] = (struct group){c->detector->name, c->detector->param, c->detector->params,
				  words_of_detector(c)};
	group[2] = (struct group){c->join->name, c->join->param, c->join->params, c->of_join};
	group[3] = (struct group){"decision", narrows_decision_param(0),
				  rows_of(narrows_decision_param), c->of_detector.word};
	group[4] = (struct group){"window", narrows_window_param(0), rows_of(narrows_window_param),
				  c->window};
	if (!c->detector->measures)
		group[3].rows = 0;
	if (law->kind == NR_MODEL)
		group[4].rows = 0;
}

static void defaults(const struct group *group)
{
	for (nr_u32 n = 0; n < group->rows; n++)
		group->word[n] = kept(&group->row[n], group->row[n].value);
}

/* The next of `text` up to a space; its length is 0 at the end. */
static struct word next(const char **text)
{
	struct word word;

	while (**text == ' ')
		++*text;
	word = (struct word){*text, (int)strcspn(*text, " ")};
	*text += word.length;
	return word;
}

/* FIELD=VALUE, in words: what is left of '=' goes to *name, what is right of it to *value. */
static int halves(struct word setting, struct word *name, struct word *value)
{
	const char *equals = memchr(setting.at, '=', (size_t)setting.length);

	if (!equals)
		return 0;
	*name = (struct word){setting.at, (int)(equals - setting.at)};
	*value = (struct word){equals + 1, setting.length - name->length - 1};
	return 1;
}

static int set_in(const struct group *group, struct word field, struct word value)
{
	for (nr_u32 n = 0; n < group->rows; n++)
		if (is(field, group->row[n].name))
			return set(&group->row[n], &group->word[n], value);
	return -1;
}

/* DETECTOR.preset=NAME: all its parameters at once. */
static int set_preset(const struct choice *c, const struct group *group, struct word name)
{
	for (const struct nr_preset *preset = c->detector->preset; preset && preset->name;
	     preset++) {
		const char *rest = preset->set;
		struct word setting, field, value;

		if (!is(name, preset->name))
			continue;
		defaults(group);
		while ((setting = next(&rest)).length)
			if (!halves(setting, &field, &value) || set_in(group, field, value) != 1)
				return 0;
		return 1;
	}
	return 0;
}

static int set_one(struct choice *c, struct word setting, const struct reason *reason)
{
	struct group group[GROUPS];
	struct word name, field, value, bad = shown(setting);
	const char *point;

	groups(c, group);
	if (!halves(setting, &name, &value) || !(point = memchr(name.at, '.', (size_t)name.length)))
		return refuse(reason, "setting '%.*s': expected GROUP.PARAMETER=VALUE", bad.length,
			      bad.at);
	field = (struct word){point + 1, name.length - (int)(point - name.at) - 1};
	name.length = (int)(point - name.at);
	for (int n = 0; n < GROUPS; n++) {
		int done;

		if (!is(name, group[n].name))
			continue;
		if (n == 1 && c->detector->preset && is(field, "preset"))
			done = set_preset(c, &group[n], value);
		else
			done = set_in(&group[n], field, value);
		if (done == 1)
			return 1;
		if (done == 0)
			return refuse(reason, "setting '%.*s': the parameter does not take this",
				      bad.length, bad.at);
	}
	return refuse(reason, "setting '%.*s': not a parameter of this control", bad.length,
		      bad.at);
}

/* As Params::check of src/params.rs. */
static int agree(const struct choice *c, const struct reason *reason)
{
	const struct nr_decision_params *decision = &c->of_detector.decision;
	const struct nr_lisa_params *lisa = (const struct nr_lisa_params *)c->of_join;

	if (decision->together > decision->observations)
		return refuse(reason,
			      "setting 'decision.together=%u': expected at most "
			      "decision.observations, %u",
			      decision->together, decision->observations);
	if (c->join_number == NR_START_lisa && lisa->least > lisa->most)
		return refuse(reason, "setting 'lisa.least=%u': expected at most lisa.most, %u",
			      lisa->least, lisa->most);
	return 1;
}

static int settle(struct choice *c, const char *settings, const struct reason *reason)
{
	struct group group[GROUPS];
	struct word setting;

	groups(c, group);
	for (int n = 0; n < GROUPS; n++)
		defaults(&group[n]);
	while (settings && (setting = next(&settings)).length)
		if (!set_one(c, setting, reason))
			return 0;
	return agree(c, reason);
}

uint32_t narrows_cc_abi(void)
{
	return NARROWS_ABI;
}

struct narrows_cc *narrows_cc_create(const char *control, const char *settings, char *error,
				     size_t size)
{
	const struct reason reason = {error, size};
	struct choice c = {0};
	struct narrows_cc *cc;

	if (!choose(&c, control ? control : "", &reason) || !settle(&c, settings, &reason))
		return NULL;
	cc = aligned_alloc(_Alignof(struct narrows_cc), sizeof(*cc));
	if (cc)
		*cc = (struct narrows_cc){0};
	if (cc && c.detector->measures)
		cc->detection = calloc(1, sizeof(*cc->detection) +
					      (c.detector->native ? c.detector->pairs : 0));
	if (!cc || (c.detector->measures && !cc->detection)) {
		free(cc);
		refuse(&reason, "no memory");
		return NULL;
	}
	cc->module = c.module;
	cc->detector = c.detector_number;
	cc->start = c.join_number << 3 | c.exit_number;
	narrows_conn_init(&cc->conn, c.law, c.detector_number, c.window, c.param, c.of_join);
	if (cc->detection)
		narrows_detection_init(cc->detection, &c.of_detector);
	return cc;
}

void narrows_cc_destroy(struct narrows_cc *cc)
{
	if (cc)
		free(cc->detection);
	free(cc);
}

/* A path has a window from its join until it leaves. */
static int has_joined(const struct narrows_cc *cc, uint32_t path)
{
	return path < NARROWS_PATHS && cc->path[path].cwnd != 0;
}

int narrows_cc_unused(const struct narrows_cc *cc)
{
	for (uint32_t path = 0; path < NARROWS_PATHS; path++)
		if (!has_joined(cc, path))
			return (int)path;
	return -1;
}

int narrows_cc_event(struct narrows_cc *cc, uint32_t path, const struct narrows_event *event)
{
	const struct nr_event *ev = (const struct nr_event *)event;

	if (path >= NARROWS_PATHS || (event->kind != NARROWS_JOINED && !has_joined(cc, path)))
		return NARROWS_NO_PATH;
	if (event->kind < NARROWS_JOINED || event->kind > NARROWS_LEFT ||
	    event->state > NARROWS_FAILED)
		return NARROWS_NO_EVENT;
	if (event->kind != NARROWS_LEFT &&
	    (event->state == NARROWS_FREE || !event->mss || event->mss > MSS_MAX))
		return NARROWS_NO_EVENT;
	/* A fixed detector says what path is coupled with which when it joins. */
	if (cc->detection || event->kind == NARROWS_JOINED)
		narrows_detect(cc->detector, &cc->conn, cc->detection, path, ev);
	cc->module->event(cc->start, &cc->conn, path, &cc->path[path], ev);
	return NARROWS_OK;
}

/* The paths that have joined, a bit each. */
static uint32_t joined(const struct narrows_cc *cc)
{
	uint32_t paths = 0;

	for (uint32_t path = 0; path < NARROWS_PATHS; path++)
		paths |= (uint32_t)has_joined(cc, path) << path;
	return paths;
}

static uint32_t place(const struct nr_detection *detection, uint32_t path)
{
	if (!detection || !nr_stamp(&detection->decided))
		return NARROWS_UNDECIDED;
	return nr_place(&detection->decided, path);
}

int narrows_cc_read(const struct narrows_cc *cc, uint32_t path, struct narrows_path *out)
{
	const struct nr_path *line;
	int64_t credit;

	if (!has_joined(cc, path))
		return NARROWS_NO_PATH;
	line = &cc->conn.path[path];
	credit = cc->path[path].credit;
	*out = (struct narrows_path){
	    .bytes = (uint64_t)((int64_t)((uint64_t)line->cwnd * line->mss) +
				credit * (int64_t)line->mss / (int64_t)NR_ONE),
	    .pacing_rate = line->pacing_rate,
	    .bw = line->bw,
	    .credit = credit,
	    .cwnd = line->cwnd,
	    .ssthresh = line->ssthresh,
	    .advice = line->advice,
	    .coupled = nr_mask(&cc->conn, path) & joined(cc),
	    .cut = nr_cut_mask(&cc->conn, path) & joined(cc),
	    .place = place(cc->detection, path),
	};
	return NARROWS_OK;
}
