#include "base/policy.h"

struct policy policy = {
    .stack_bytes = 512 * KiB,
    .stack_least = 10,
    .stack_foreign_bytes = 8 * KiB,
    .stack_blocks = 4096,
    .thread_bytes = 8 * MiB,
    .transfer_bytes = 128 * KiB,
    .transfer_blocks = 4096,
    .retain_slices = 512,
    .big_cache_bytes = 96 * MiB,
};
