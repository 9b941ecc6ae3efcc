/* What all memory is used for at one moment: sums over descriptors, stacks and dirty mappings. And
 * the rules that heap_check checks, with what it found broken.
 *
 * The caller holds all locks (heap_lock_all), so no other thread is in the slow path beyond taking
 * a lock. Other threads may still push and pop, so only the bounds of their stacks are read.
 * Nothing here calls malloc or changes anything. */
#ifndef HAKMEM_REPORT_ACCOUNTS_H
#define HAKMEM_REPORT_ACCOUNTS_H

#include "hakmem/hakmem.h"
#include "heap/classes.h"

/* Rule, what it says. What is checked is named as it should be. */
#define CHECK_RULES(RULE)                                                                   \
    RULE(MAP_OWNER, "an entry of the map names a descriptor in metadata")                   \
    RULE(MAP_BIN, "an entry of the map has the bin of what it names")                       \
    RULE(MAP_BASE, "an entry of the map lies where what it names begins, or in its slab")   \
    RULE(SUPERSLAB_LISTS, "lists of superslabs are whole")                                  \
    RULE(SUPERSLAB_COUNT, "as many superslabs are found as are mapped")                     \
    RULE(SUPERSLAB_LONGEST, "no free run is longer than a superslab's list says")           \
    RULE(SUPERSLAB_NONEMPTY, "the word of lists with members names those with members")     \
    RULE(SLICES_SHARED, "a slice is free or in one slab or in one block")                   \
    RULE(SLICES_LOST, "a slice that is not free is in a slab or a block")                   \
    RULE(SLICES_TOUCHED, "a slice that is in use counts as one that may hold pages")        \
    RULE(SLICES_RETAINED, "the count of retained slices is that of their bits")             \
    RULE(USE_SLICES, "the count of bytes of slices in use is that of their bits")           \
    RULE(WHOLE_LENGTH, "a block of whole slices has the slices that its bytes need")        \
    RULE(SLAB_HOME, "a slab lies in its superslab")                                         \
    RULE(SLAB_FREE, "a slab's free count is that of its bits")                              \
    RULE(SLAB_SUMMARY, "a slab's summary names the words with bits")                        \
    RULE(SLAB_BITS, "a slab has no bits beyond its blocks")                                 \
    RULE(SLAB_EMPTY, "a slab whose blocks are all free is given back")                      \
    RULE(SLAB_ABSENT, "no block in use has a byte in an absent page")                       \
    RULE(PARTIAL_TREE, "a shard's tree of slabs is whole, lowest address on top")           \
    RULE(PARTIAL_PLACE, "a slab in a tree is of its shard and class")                       \
    RULE(PARTIAL_MISSING, "a slab with free blocks is in its shard's tree, others are not") \
    RULE(PARTIAL_SUMS, "a shard's sums are those of the slabs in its trees")                \
    RULE(SHARD_THREADS, "a shard counts the threads that take from it")                     \
    RULE(CACHE_COUNT, "the count of caches is that of their list")                          \
    RULE(CACHE_CAPACITY, "a cache's capacity in bytes is that of its stacks")               \
    RULE(STACK_BOUNDS, "a stack's top, limit and capacity lie in its array")                \
    RULE(STACK_TOPMOST, "the topmost block beside the top is the one at the top")           \
    RULE(STACK_BLOCK, "a stack holds blocks of its class")                                  \
    RULE(TRANSFER_BOUNDS, "a transfer cache holds no more than it may")                     \
    RULE(TRANSFER_BLOCK, "a transfer cache holds blocks of its class")                      \
    RULE(BLOCK_FREE, "a block in a stack or transfer cache is taken by its bit")            \
    RULE(BLOCK_TWICE, "a block is in one stack or transfer cache, once")                    \
    RULE(USE_HUGE, "the count of bytes of huge blocks in use is that of their mappings")    \
    RULE(USE_HELD, "the count of bytes held is the sum of those in use and kept")           \
    RULE(HUGE_LENGTH, "a huge block's mapping holds its bytes, in whole slices")            \
    RULE(KEPT_LENGTH, "a kept mapping is of whole slices")                                  \
    RULE(KEPT_MAPPED, "no entry of the map is in a kept mapping")                           \
    RULE(KEPT_BYTES, "the count of kept bytes is that of the kept mappings")                \
    RULE(RANGES_OVERLAP, "superslabs, huge blocks and kept mappings lie apart")             \
    RULE(META_FREE, "lists of free pieces of metadata are whole")                           \
    RULE(META_SUM, "pieces in use, free and unused add up to all metadata")                 \
    RULE(MAPPED_SUM, "all parts add up to the bytes that the kernel has mapped")

#define CHECK_RULE_NAME(rule, words) CHECK_##rule,
enum check_rule { CHECK_RULES(CHECK_RULE_NAME) CHECK_RULE_COUNT };
#undef CHECK_RULE_NAME

struct class_accounts { /* blocks */
    size_t slabs;
    size_t free;        /* by their bits */
    size_t taken;       /* the rest: the program's, and those in stacks and transfer caches */
    size_t cached;      /* in threads' stacks */
    size_t in_transfer; /* in the transfer cache */
    size_t compacts;    /* shards in which it compacts (heap/slab.h) */
    size_t compacted;   /* bytes of blocks that went back to thin slabs, ever */
    size_t regained;    /* bytes of thin slabs whose pages went back, or that became empty */
};

struct check_breach {
    enum check_rule rule;
    const void *where;
    size_t expected, found;
};

#define CHECK_BREACHES_KEPT 16

struct accounts {
    /* From `program` to `map` they add up to `mapped`. `returned_in_slabs` is of free_in_slabs and
     * rest. Of a block that the program has it is a class's size, or what is usable. The limit of
     * containers is left out. */
    struct hakmem_stats stats;

    size_t metadata_used; /* of metadata, in pieces in use */
    size_t slab_slices;   /* slices that are slabs' */
    size_t huge_mapped;   /* bytes of the mappings of huge blocks in use */
    size_t huge_usable;

    struct class_accounts classes[CLASSES];

    size_t breaches;
    size_t broken[CHECK_RULE_COUNT];
    struct check_breach first[CHECK_BREACHES_KEPT];
};

/* Fills in all but the breaches. */
void account(struct accounts *all);

/* Accounts, then checks each rule. Blocks may be on their way between the program and the slow
 * path, unless no other thread is at work (`quiet`). Returns how many breaches there are, SIZE_MAX
 * without memory for the notes. */
size_t heap_check(struct accounts *accounts, bool quiet);

/* Writes the breaches to standard error, a line each. Needs no lock. */
void heap_check_report(const struct accounts *accounts);

#endif
