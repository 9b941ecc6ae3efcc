#include "base/counters.h"

#include "base/watch.h"

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
