/* The options by name: their types, and how their values are read and written. The table is
 * constant. The values are `policy`, which only options_start (below) sets, before the first
 * cache exists, so every thread may read it without a lock. Nothing here allocates. */
#ifndef HAKMEM_OPTIONS_OPTIONS_H
#define HAKMEM_OPTIONS_OPTIONS_H

#include "base/atomic.h"
#include "base/defs.h"
#include "base/policy.h"
#include "base/text.h"

enum option_type {
    OPTION_BYTES,
    OPTION_COUNT,
    OPTION_SWITCH,
    OPTION_PRESET,
    OPTION_WHEN,
    OPTION_PATH
};

struct option {
    char name[24]; /* as in a file; in the environment in capitals, after HAKMEM_ */
    enum option_type type;
    size_t value; /* the default */
    size_t least, most;
    size_t offset; /* of its field in struct policy */
};

enum {
#define OPTION(name, type, value, least, most, help) OPTION_NUMBER_##name,
#include "base/options.def"
    OPTIONS
};

extern const struct option options[OPTIONS] HIDDEN;

/* A part of a text. */
struct words {
    const char *start;
    size_t length;
};

/* The option's current value. */
static inline size_t option_value(const struct option *option)
{
    return load_relaxed((const size_t *)((const char *)&policy + option->offset));
}

static inline bool option_may_be_auto(const struct option *option) { return option->value == AUTO; }

/* Finds an option by its name, in upper or lower case; null if there is none. */
const struct option *option_find(struct words name);

/* ---- where options come from ---- */

/* Reads /etc/hakmem.conf, then the file that HAKMEM_CONFIG names, then the environment; the later
 * wins. What is wrong gets a line on standard error and leaves its option as it was. A variable
 * that resembles no option is somebody else's. A program with raised privileges reads the first
 * alone, of it only what makes the program safer, and says nothing. Called once, after os_start. */
void options_start(void);

#endif
