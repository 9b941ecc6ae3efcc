#include "back/map.h"

#include "base/hardening.h"
#include "base/watch.h"
#include "os/lock.h"
#include "os/os.h"

#define REGION_BITS MAP_LEAF_BITS
#define REGIONS 0x10000u /* 48 bits of address */
#define REGION_SLICES ((size_t)1 << (REGION_BITS - SLICE_BITS))

struct map_leaf {
    void *owners[REGION_SLICES]; /* atomic; changes under the lock of what it names */
    uint16_t
        bin_offsets[REGION_SLICES]; /* atomic; of slices in the window the flat table has them */
};

uint16_t window_bin_offsets[WINDOW_SLICES];

static struct map_leaf *root[REGIONS]; /* atomic; set once, under the lock */
static struct map_leaf *spare;         /* atomic: of no region yet */
static struct lock map_lock = LOCK(MAP);

/* With huge pages the first entry would cost 2 MiB. */
void map_start(void)
{
    uintptr_t first = round_up((uintptr_t)window_bin_offsets, os_page);
    uintptr_t end = (uintptr_t)(window_bin_offsets + WINDOW_SLICES) & ~(os_page - 1);
    os_small_pages((void *)first, end - first, false);
}

static struct map_leaf *leaf_at(uintptr_t address)
{
    uintptr_t region = address >> REGION_BITS;
    return region < REGIONS ? load_acquire(&root[region]) : NULL;
}

static size_t slice_in_leaf(uintptr_t address) { return (uint32_t)address >> SLICE_BITS; }

/* Where the bin offset of p's slice stands; null where nothing was ever ours. */
static inline uint16_t *bin_offset_at(const void *p)
{
    if (likely((uintptr_t)p - WINDOW_BASE < WINDOW))
        return &window_bin_offsets[(uintptr_t)p / SLICE % WINDOW_SLICES];
    struct map_leaf *leaf = leaf_at((uintptr_t)p);
    return leaf != NULL ? &leaf->bin_offsets[slice_in_leaf((uintptr_t)p)] : NULL;
}

unsigned map_bin(const void *p)
{
    const uint16_t *offset = bin_offset_at(p);
    return offset == NULL || (uintptr_t)p % 16 != 0 ? BIN_FOREIGN
                                                    : load_relaxed(offset) / BIN_BYTES;
}

unsigned map_find(const void *p, void **owner)
{
    unsigned bin = map_bin(p);
    *owner = bin != BIN_FOREIGN ? map_owner(p) : NULL;
    return bin;
}

void *map_owner(const void *p)
{
    struct map_leaf *leaf = leaf_at((uintptr_t)p);
    return leaf == NULL ? NULL : load_acquire(&leaf->owners[slice_in_leaf((uintptr_t)p)]);
}

const void *map_below(const void *p)
{
    uintptr_t region = (uintptr_t)p >> REGION_BITS;
    if (region >= REGIONS)
        return NULL;
    size_t slices = slice_in_leaf((uintptr_t)p) + 1;
    for (;; region--, slices = REGION_SLICES) {
        struct map_leaf *leaf = load_acquire(&root[region]);
        for (size_t i = leaf != NULL ? slices : 0; i-- > 0;)
            if (load_relaxed(&leaf->owners[i]) != NULL)
                return (const void *)(region << REGION_BITS | i << SLICE_BITS);
        if (region == 0)
            return NULL;
    }
}

#define LEAF_BYTES round_up(sizeof(struct map_leaf), os_page)

/* Pages that nobody may touch end what gdb dumps of a mapping. So the kernel must not join a
 * guarded block's mapping to a leaf's: a page on each side keeps them apart. */
static size_t leaf_guard(void) { return hardening.marks ? os_page : 0; }

static struct map_leaf *leaf_new(void)
{
    struct map_leaf *leaf = leaf_guard() != 0 ? os_map_guarded(LEAF_BYTES) : os_map(LEAF_BYTES);
    if (leaf == NULL)
        return NULL;
    os_name(leaf, LEAF_BYTES, "hakmem: map");
    os_small_pages(leaf, LEAF_BYTES, false);
    return leaf;
}

static void leaf_end(struct map_leaf *leaf)
{
    os_unmap((char *)leaf - leaf_guard(), LEAF_BYTES + 2 * leaf_guard());
}

bool map_cover(const void *start, size_t length)
{
    ASSERT(length >= 1);
    uintptr_t first = (uintptr_t)start >> REGION_BITS;
    uintptr_t last = ((uintptr_t)start + length - 1) >> REGION_BITS;
    if (last >= REGIONS)
        return false;
    bool covered = true;
    for (uintptr_t region = first; region <= last && covered; region++) {
        if (load_acquire(&root[region]) != NULL)
            continue;
        lock_take(&map_lock);
        if (root[region] == NULL) {
            struct map_leaf *leaf = leaf_new();
            covered = leaf != NULL;
            if (covered)
                store_release(&root[region], leaf);
        }
        lock_release(&map_lock);
    }
    return covered;
}

struct map_leaf *map_cover_any(void)
{
    struct map_leaf *leaf = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);
    return leaf != NULL ? leaf : leaf_new();
}

void map_cover_by(const void *p, struct map_leaf *leaf)
{
    ASSERT(leaf != NULL && (uintptr_t)p >> REGION_BITS < REGIONS);
    struct map_leaf **entry = &root[(uintptr_t)p >> REGION_BITS];
    lock_take(&map_lock);
    if (*entry == NULL) {
        store_release(entry, leaf);
        leaf = NULL;
    }
    lock_release(&map_lock);
    if (leaf != NULL)
        leaf = __atomic_exchange_n(&spare, leaf, __ATOMIC_ACQ_REL);
    if (leaf != NULL)
        leaf_end(leaf);
}

void map_set(const void *start, size_t slices, unsigned bin, void *owner)
{
    ASSERT(slices >= 1 && bin * BIN_BYTES <= UINT16_MAX);
    ASSERT((owner == NULL) == (bin == BIN_FOREIGN));
    uintptr_t address = (uintptr_t)start;
    uint16_t offset = (uint16_t)(bin * BIN_BYTES);
    for (size_t i = 0; i < slices; i++, address += SLICE) {
        ASSERT(leaf_at(address) != NULL);
        store_release(&leaf_at(address)->owners[slice_in_leaf(address)], owner);
        store_relaxed(bin_offset_at((const void *)address), offset);
    }
}

void *map_clear(const void *p, unsigned bin)
{
    ASSERT(bin_offset_at(p) != NULL && bin != BIN_FOREIGN);
    uint16_t before = (uint16_t)(bin * BIN_BYTES);
    if (!__atomic_compare_exchange_n(bin_offset_at(p), &before, BIN_FOREIGN * BIN_BYTES, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return NULL;
    void *owner = map_owner(p);
    store_relaxed(&leaf_at((uintptr_t)p)->owners[slice_in_leaf((uintptr_t)p)], NULL);
    return owner;
}

/* A thread that frees the block changes the entry only from "in use", so until that is stored no
 * other thread stores here. */
void *map_whole_taken(const void *p)
{
    ASSERT(map_bin(p) == BIN_WHOLE_FREE);
    store_relaxed(bin_offset_at(p), BIN_WHOLE * BIN_BYTES);
    return map_owner(p);
}

void *map_whole_freed(const void *p)
{
    uint16_t before = BIN_WHOLE * BIN_BYTES;
    ASSERT(bin_offset_at(p) != NULL);
    return __atomic_compare_exchange_n(bin_offset_at(p), &before, BIN_WHOLE_FREE * BIN_BYTES, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
               ? map_owner(p)
               : NULL;
}

bool map_next(uintptr_t *address)
{
    for (uintptr_t region = *address >> REGION_BITS; region < REGIONS; region++) {
        const struct map_leaf *leaf = load_acquire(&root[region]);
        bool begun = region == *address >> REGION_BITS;
        size_t slice = leaf == NULL ? REGION_SLICES : begun ? slice_in_leaf(*address) : 0;
        for (; slice < REGION_SLICES; slice++) {
            uintptr_t at = region << REGION_BITS | slice << SLICE_BITS;
            if (load_relaxed(&leaf->owners[slice]) == NULL &&
                load_relaxed(bin_offset_at((const void *)at)) == 0)
                continue;
            *address = at;
            return true;
        }
    }
    return false;
}

size_t map_bytes(void)
{
    size_t leaves = load_relaxed(&spare) != NULL;
    for (size_t region = 0; region < REGIONS; region++)
        leaves += load_relaxed(&root[region]) != NULL;
    return leaves * (LEAF_BYTES + 2 * leaf_guard());
}

const struct watch_map watch_map = {
    .bytes = sizeof watch_map,
    .root_entries = REGIONS,
    .slice_bits = SLICE_BITS,
    .leaf_bits = MAP_LEAF_BITS,
    .leaf_bytes = sizeof(struct map_leaf),
    .owners_at = offsetof(struct map_leaf, owners),
    .bins_at = offsetof(struct map_leaf, bin_offsets),
    .bin_bytes = BIN_BYTES,
    .bin_huge = BIN_HUGE,
    .bin_whole = BIN_WHOLE,
    .bin_whole_free = BIN_WHOLE_FREE,
    .root = root,
    .window_bins = window_bin_offsets,
    .spare = &spare,
    .window_base = WINDOW_BASE,
    .window_slices = WINDOW_SLICES,
};
