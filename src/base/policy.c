/* What the whole process has one of: its policy, and its counters. */
#include "base/policy.h"

#include "base/watch.h"

struct policy policy = {
#define OPTION(name, type, value, least, most, help) .name = (value),
#include "base/options.def"
};

char stats_path[PATH_OPTION_MOST], profile_path[PATH_OPTION_MOST], record_path[PATH_OPTION_MOST];

struct hardening hardening;

unsigned closings;

struct counters counters;

const struct watch_counters watch_counters = {
    .bytes = sizeof watch_counters,
    .freed_at = offsetof(struct counters, freed),
    .freed_slices_at = offsetof(struct counters, freed_slices),
    .freed_huge_at = offsetof(struct counters, freed_huge),
    .pages_at = offsetof(struct counters, pages),
    .slices_at = offsetof(struct counters, slices),
    .huge_at = offsetof(struct counters, huge),
    .first = &counters,
};
