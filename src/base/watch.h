/* What another process needs to know to read this heap from outside, without a lock and without
 * code of ours running: where things are, and where in them their fields lie. It is told by tables
 * of constants, so it costs the program nothing.
 *
 * The tables are a format: a reader may be older or newer than the library. So fields are only
 * added, at the end; what a table's first word says are the bytes it has. A field's place (_at) and
 * all lengths are in bytes. api/heap.c has the table
 * of tables; look/ is the reader.
 *
 * Each layer tells what is its own, beside it. */
#ifndef HAKMEM_BASE_WATCH_H
#define HAKMEM_BASE_WATCH_H

#include "base/defs.h"

/* The address map (back/map.h). A root of pointers, each null or to a middle of `middle_entries`
 * pointers, each null or to the leaf of a region of addresses; in that an owner for each slice, and
 * the bin's number times bin_bytes. Slices in the window have the latter in the window's table. */
struct watch_map {
    uint32_t bytes;
    uint32_t root_entries, middle_entries;
    uint32_t slice_bits, leaf_bits; /* of an address: those in a slice, in a leaf's region */
    uint32_t leaf_bytes, owners_at, bins_at;
    uint16_t bin_bytes, bin_huge, bin_whole, bin_whole_free;
    const void *root, *window_bins;
    uint64_t window_base, window_slices;
    uint64_t superslabs_bytes; /* from the window's base on: nothing else is mapped there */
};

/* Regions of metadata (back/meta.h), a list whose first is at `first`. */
struct watch_meta {
    uint32_t bytes;
    uint32_t next_at, length_at, pad;
    const void *first;
};

/* Superslabs (back/superslabs.h): lists by the longest free run, and those without one. A list's
 * node is next and previous. */
struct watch_superslabs {
    uint32_t bytes;
    uint32_t lists, size, node_at, base_at, free_at, touched_at, slices_at;
    const void *by_longest, *dense;
};

/* Huge blocks (back/huge.h): in use the map has them, free ones are in a list. */
struct watch_huge {
    uint32_t bytes;
    uint32_t size, node_at, base_at, length_at, usable_at;
    const void *dirty;
};

/* Size classes and slabs (heap/). The slab's words follow it: a set bit is a free block. */
struct watch_slabs {
    uint32_t bytes;
    uint32_t classes, class_bytes, size_at, blocks_at, slices_at;
    uint32_t slab_bytes, base_at, home_at, cls_at, usable_at, words_at;
    uint32_t places_at; /* how many of its blocks can be handed out: the others count as free */
    const void *table;
};

/* Transfer caches (heap/transfer.h), one for each class. */
struct watch_transfer {
    uint32_t bytes;
    uint32_t stride, count_at, capacity_at, blocks_at, pad;
    const void *first;
};

/* Threads' caches (front/cache.h), a list whose first is at `every`. For each stack its lowest
 * slot, `base`, and, in the bins, the topmost slot. Stacks beyond the classes are second ones, from
 * class 0 on.
 */
struct watch_caches {
    uint32_t bytes;
    uint32_t size, every_at, generation_at;
    uint32_t stacks, bins_at, bin_bytes, top_at;
    uint32_t cold_at, cold_bytes, base_at, room_at, room_mask;
    uint32_t closes_at; /* in a bin a word: 0 there sends each free to the slow path */
    const void *every, *generation;
    uint32_t mine_at; /* of a cache, a word: null, or the address of a variable of its thread */
    /* While a profile is on, more stacks of at most `ahead_most` blocks (front/stacks.h): so many,
     * in a cache, each of `ahead_bytes`, with `top` as in a bin. Below the lowest block is the
     * window's base. 0: none. */
    uint32_t aheads, ahead_at, ahead_bytes, ahead_most;
    /* In a hardened heap the threads' free blocks are elsewhere (front/hardened.h): a word of a
     * cache is null, or the address of a table with so many words from `held_first` on, one for
     * each class: null, or the address of a struct watch_held. `held_classes` 0: none. */
    uint32_t held_at, held_first, held_classes;
};

/* Behind it are words: the first `ready` of `ready_most` are blocks, then `held` of `held_most`. */
struct watch_held {
    uint32_t ready, ready_most, held, held_most;
};

/* Counters since the start of the process, in bytes: what was freed, in three words; and for pages,
 * slices and huge blocks what was given back, and of that taken again. */
struct watch_counters {
    uint32_t bytes;
    uint32_t freed_at, freed_slices_at, freed_huge_at;
    uint32_t pages_at, slices_at, huge_at; /* purged, taken again: two words */
    uint32_t pad;
    const void *first;
};

/* The heap profile (profile/samples.h). `sites` is where the address of the buckets is, or null;
 * each has a list of sites. A site has its frames, `depth` of them, and three tallies: a number of
 * samples, and floating-point numbers: blocks, bytes and, where `tally_bytes` says so, the variance
 * of the bytes. `rate` and so on are where numbers are. Where `name_at` is not 0 it says how long
 * the site's name is, which follows the frames. `fill` is a struct fill, of a number and five
 * floating-point numbers. `samples` is where the address of the samples' buckets is, or null, and
 * `bucket_bits` where the logarithm of their number is; each has a list. A sample has the address
 * of its block, null while the sample is unused, its site, the bytes that were requested, those of
 * the block, and how many blocks it stands for, a floating-point number. `site_buckets` is where
 * the number of the first buckets is. `lines` is where the address of the first script line is
 * (profile/noted.h), a list, or null. After its line_size bytes follow the names: a
 * function's and a file's, whose bytes are numbers of 32 bits, as the line is. Its frames have its
 * address. */
struct watch_profile {
    uint32_t bytes;
    uint32_t buckets, size, next_at, total_at, live_at, peak_at, depth_at;
    const void *sites, *rate, *lost, *memory;
    uint32_t name_at, sample_size, sample_next_at, sample_p_at, sample_site_at;
    uint32_t sample_requested_at, sample_block_at, sample_weight_at;
    const void *fill, *samples, *bucket_bits, *site_buckets;
    const void *lines;
    uint32_t line_size, line_next_at, line_address_at, line_number_at;
    uint32_t line_function_at, line_file_at;
    const void *course; /* of the whole process: struct course */
    const void *modules;
    uint32_t module_size, module_next_at, module_bytes_at;
    uint32_t since_at;    /* of a site */
    uint32_t tally_bytes; /* 0: those without a variance */
    uint32_t tally_pad;
};

/* Marks (profile/samples.h): how often one was set, when it was last (ns of CLOCK_MONOTONIC), what
 * was in use then (an estimate; 0 without a profile), and its name. A count of 0: none. */
#define MARKS_MOST 64
#define MARK_NAME 40 /* bytes, with a zero at the end */

struct watch_mark {
    uint64_t count; /* written last; all numbers are atomic */
    uint64_t time;
    double in_use;
    char name[MARK_NAME];
};

struct watch_marks {
    uint32_t bytes;
    uint32_t most;
    const struct watch_mark *marks;
};

/* Limits of memory (back/use.h): where the numbers of bytes are, what is held and the limits. The
 * largest number is no limit. */
struct watch_limits {
    uint32_t bytes;
    uint32_t pad;
    const void *held, *soft, *hard, *container;
};

/* Orders from outside (life/settings.h): who gives one fills in the fields, adds 1 to `asked`,
 * stores the sum of the three words of what was freed (watch_counters) to `due`, and 0 to the
 * limits of all stacks that have begun. It is done when `done` has the number of `asked`. */
struct watch_orders {
    uint32_t bytes;
    uint32_t size, asked_at, done_at, order_at, answer_at, value_at, result_at;
    uint32_t name_at, name_bytes;
    void *orders, *due;
    uint32_t *closes; /* not 0 while stacks are closed from outside: written before they are */
};

/* The names of all of them, in the order of struct hakmem_watch: those of the first version, and
 * those that came later, which an older library lacks. */
#define WATCH_TABLES(TABLE, LATER) \
    TABLE(map)                     \
    TABLE(meta)                    \
    TABLE(superslabs)              \
    TABLE(huge)                    \
    TABLE(slabs)                   \
    TABLE(transfer)                \
    TABLE(caches)                  \
    TABLE(counters)                \
    LATER(orders)                  \
    LATER(profile)                 \
    LATER(limits)                  \
    LATER(marks)

#define WATCH_TABLE(name) extern const struct watch_##name watch_##name HIDDEN;
WATCH_TABLES(WATCH_TABLE, WATCH_TABLE)
#undef WATCH_TABLE

/* Where they are. The note of this file (type 1, name "hakmem") says where this is. */
struct hakmem_watch {
    char magic[8]; /* "hakmem", then two zeroes */
    uint32_t bytes;
    uint32_t format; /* of all this: another one is not understood by readers of this one */
    char version[16];
#define WATCH_TABLE(name) const struct watch_##name *name;
    WATCH_TABLES(WATCH_TABLE, WATCH_TABLE)
#undef WATCH_TABLE
};

extern const struct hakmem_watch hakmem_watch HIDDEN;

#define WATCH_MAGIC "hakmem\0"
#define WATCH_FORMAT 2
#define WATCH_NOTE 1

#endif
