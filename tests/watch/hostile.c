/* A process that means to mislead: it has the note and the tables of a heap, which lead in circles,
 * to addresses that are not there, and to itself. `seed` chooses how. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/watch.h"

#define WORDS (1u << 20)
#define FAKE_BYTES (WORDS * sizeof(uint64_t))

static uint64_t *fake; /* where all leads to */
static uint64_t state;

static uint64_t random_next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Most often an address in the fake, so that what is found there is read, too. */
static uint64_t word(void)
{
    switch (random_next() % 8) {
    case 0:
        return random_next();
    case 1:
        return random_next() % 4096;
    case 2:
        return UINT64_MAX - random_next() % 64;
    default:
        return (uint64_t)(uintptr_t)fake + random_next() % FAKE_BYTES / 8 * 8;
    }
}

struct watch_map map;
struct watch_meta meta;
struct watch_superslabs superslabs;
struct watch_huge huge;
struct watch_slabs slabs;
struct watch_transfer transfer;
struct watch_caches caches;
struct watch_counters counters;
struct watch_profile profile;

struct hakmem_watch false_watch = {
    .magic = WATCH_MAGIC,
    .bytes = sizeof false_watch,
    .format = WATCH_FORMAT,
    .version = "9.9.9\nx\x1b[2J",
    .map = &map,
    .meta = &meta,
    .superslabs = &superslabs,
    .huge = &huge,
    .slabs = &slabs,
    .transfer = &transfer,
    .caches = &caches,
    .counters = &counters,
    .profile = &profile,
};

__asm__(".pushsection .note.hakmem, \"a\", %note\n"
        ".balign 4\n"
        ".long 7, 4, 1\n"
        ".asciz \"hakmem\"\n"
        ".balign 4\n"
        "1: .long false_watch - 1b\n"
        ".popsection\n");

int main(int argc, char **argv)
{
    state = argc > 1 ? strtoull(argv[1], NULL, 10) * 2654435761u + 1 : 1;
    prctl(PR_SET_NAME, "\x1b[2J\n\xff");
    fake = mmap(NULL, FAKE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fake == MAP_FAILED)
        return 3;
    for (unsigned i = 0; i < WORDS; i++)
        fake[i] = word();

    /* Possible as a whole, so that it is believed. */
    map = (struct watch_map){.bytes = sizeof map,
                             .root_entries = 256,
                             .middle_entries = 256,
                             .slice_bits = 16,
                             .leaf_bits = 32,
                             .leaf_bytes = 655360,
                             .bins_at = 524288,
                             .bin_bytes = 1,
                             .bin_huge = 1,
                             .bin_whole = 2,
                             .bin_whole_free = 3,
                             .root = fake,
                             .window_bins = fake,
                             .window_base = random_next() % 2 ? 0 : (uint64_t)(uintptr_t)fake,
                             .window_slices = (uint64_t)1 << 36,
                             .superslabs_bytes = word()};
    meta = (struct watch_meta){.bytes = sizeof meta, .length_at = 8, .first = fake};
    superslabs = (struct watch_superslabs){.bytes = sizeof superslabs,
                                           .lists = 64,
                                           .size = 128,
                                           .base_at = 16,
                                           .free_at = 24,
                                           .touched_at = 32,
                                           .slices_at = 40,
                                           .by_longest = fake,
                                           .dense = fake};
    huge = (struct watch_huge){.bytes = sizeof huge,
                               .size = 64,
                               .base_at = 16,
                               .length_at = 24,
                               .usable_at = 32,
                               .dirty = fake};
    slabs = (struct watch_slabs){.bytes = sizeof slabs,
                                 .classes = 128,
                                 .class_bytes = 16,
                                 .blocks_at = 8,
                                 .slices_at = 10,
                                 .slab_bytes = 128,
                                 .home_at = 8,
                                 .cls_at = 16,
                                 .usable_at = 20,
                                 .words_at = 24,
                                 .table = fake};
    transfer = (struct watch_transfer){
        .bytes = sizeof transfer, .stride = 64, .capacity_at = 4, .blocks_at = 8, .first = fake};
    caches = (struct watch_caches){.bytes = sizeof caches,
                                   .size = 16384,
                                   .every_at = 16000,
                                   .generation_at = 16008,
                                   .stacks = 128,
                                   .bin_bytes = 32,
                                   .cold_at = 8192,
                                   .cold_bytes = 32,
                                   .room_at = 8,
                                   .room_mask = 0x3fff,
                                   .every = fake,
                                   .generation = fake};
    counters = (struct watch_counters){.bytes = sizeof counters, .first = fake};
    profile = (struct watch_profile){.bytes = sizeof profile,
                                     .buckets = 4096,
                                     .size = 96,
                                     .total_at = 16,
                                     .live_at = 40,
                                     .peak_at = 64,
                                     .depth_at = 88,
                                     .sites = fake,
                                     .rate = fake,
                                     .lost = fake,
                                     .memory = fake,
                                     .fill = fake + random_next() % 100,
                                     .samples = fake,
                                     .bucket_bits = fake,
                                     .sample_size = 48,
                                     .sample_p_at = 8,
                                     .sample_site_at = 16,
                                     .sample_block_at = 32,
                                     .sample_weight_at = 40};
    /* Numbers that are possible, and sites in a circle, as often as not. */
    if (random_next() % 2)
        for (unsigned i = WORDS / 2; i < WORDS; i++) {
            double number = (double)random_next();
            fake[i] = random_next() % 4;
            if (random_next() % 2)
                memcpy(&fake[i], &number, sizeof number);
        }
    /* Tables of classes that are possible, as often as not. */
    if (random_next() % 2)
        for (unsigned i = 0; i < 128; i++) {
            unsigned char *row = (unsigned char *)fake + i * 16;
            uint32_t size = 16 + i * 16;
            uint16_t blocks = (uint16_t)(65536 / size);
            memcpy(row, &size, sizeof size);
            memcpy(row + 8, &blocks, sizeof blocks);
            row[10] = 1;
        }
    printf("ready\n");
    fflush(stdout);
    char c;
    return read(0, &c, 1) < 0;
}
