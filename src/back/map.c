#include "back/map.h"

#include "back/meta.h"
#include "base/watch.h"
#include "os/lock.h"
#include "os/os.h"

#define ADDRESS_BITS 48
#define MIDDLE_BITS 37 /* of the addresses that one middle covers */
#define MIDDLES ((size_t)1 << (ADDRESS_BITS - MIDDLE_BITS))
#define MIDDLE_LEAVES ((size_t)1 << (MIDDLE_BITS - MAP_LEAF_BITS))
#define LEAF ((uintptr_t)1 << MAP_LEAF_BITS)
#define LEAF_SLICES (LEAF / SLICE)

struct map_leaf {
    void *owners[LEAF_SLICES];         /* atomic; changes under the lock of what it names */
    uint16_t bin_offsets[LEAF_SLICES]; /* atomic; of slices in the window the flat table has them */
};

struct map_middle {
    struct map_leaf *leaves[MIDDLE_LEAVES]; /* atomic; set once, under the lock */
};

uint16_t window_bin_offsets[WINDOW_SLICES];

static struct lock map_lock = LOCK(MAP);
static struct map_middle *root[MIDDLES]; /* atomic; set once, under the lock */
static struct map_middle window_middle;  /* in which the window is */
static size_t taken;                     /* bytes of leaves and of other middles; atomic */

static_assert(WINDOW_BASE % WINDOW == 0 && WINDOW <= (size_t)1 << MIDDLE_BITS, "one middle");

/* Leaves and middles that no region has yet: zero but for the first word, which names the next.
 * Lock: map. */
struct spare {
    struct spare *next;
};
static struct spare *spare_leaves, *spare_middles;

static struct map_middle **middle_at(uintptr_t address) { return &root[address >> MIDDLE_BITS]; }

/* With huge pages the first entry would cost 2 MiB. */
void map_start(void)
{
    uintptr_t first = round_up((uintptr_t)window_bin_offsets, os_page);
    uintptr_t end = (uintptr_t)(window_bin_offsets + WINDOW_SLICES) & ~(os_page - 1);
    os_small_pages((void *)first, end - first, false);
    store_release(middle_at(WINDOW_BASE), &window_middle);
}

static struct map_leaf **leaf_in(struct map_middle *middle, uintptr_t address)
{
    return &middle->leaves[address / LEAF % MIDDLE_LEAVES];
}

/* The number of p's slice in the window; WINDOW_SLICES or more where it is elsewhere. */
static inline uintptr_t window_slice(const void *p)
{
    return (uintptr_t)p / SLICE - WINDOW_BASE / SLICE;
}

static inline struct map_leaf *leaf_outside(uintptr_t address)
{
    if (address >> ADDRESS_BITS != 0)
        return NULL;
    struct map_middle *middle = load_acquire(middle_at(address));
    return middle != NULL ? load_acquire(leaf_in(middle, address)) : NULL;
}

static inline bool in_window(const void *p) { return likely(window_slice(p) < WINDOW_SLICES); }

static inline struct map_leaf *window_leaf(size_t slice)
{
    return load_acquire(&window_middle.leaves[slice / LEAF_SLICES]);
}

static inline struct map_leaf *leaf_at(uintptr_t address)
{
    const void *p = (const void *)address;
    return in_window(p) ? window_leaf(window_slice(p)) : leaf_outside(address);
}

static size_t slice_in_leaf(uintptr_t address) { return address / SLICE % LEAF_SLICES; }

/* Where the bin offset of p's slice stands; null where nothing was ever ours. */
static inline uint16_t *bin_offset_at(const void *p)
{
    if (in_window(p))
        return &window_bin_offsets[window_slice(p)];
    struct map_leaf *leaf = leaf_outside((uintptr_t)p);
    return leaf != NULL ? &leaf->bin_offsets[slice_in_leaf((uintptr_t)p)] : NULL;
}

unsigned map_bin(const void *p)
{
    const uint16_t *offset = bin_offset_at(p);
    return offset == NULL || (uintptr_t)p % 16 != 0 ? BIN_FOREIGN
                                                    : load_relaxed(offset) / BIN_BYTES;
}

size_t map_offset_outside(const void *p)
{
    if (in_window(p) || (uintptr_t)p % 16 != 0)
        return 0;
    const struct map_leaf *leaf = leaf_outside((uintptr_t)p);
    return leaf != NULL ? load_relaxed(&leaf->bin_offsets[slice_in_leaf((uintptr_t)p)]) : 0;
}

static void *owner_in(const struct map_leaf *leaf, const void *p)
{
    return leaf != NULL ? load_acquire(&leaf->owners[slice_in_leaf((uintptr_t)p)]) : NULL;
}

void *map_owner(const void *p) { return owner_in(leaf_at((uintptr_t)p), p); }

unsigned map_find(const void *p, void **owner)
{
    bool inside = in_window(p);
    const struct map_leaf *leaf =
        inside ? window_leaf(window_slice(p)) : leaf_outside((uintptr_t)p);
    *owner = NULL;
    if (leaf == NULL || (uintptr_t)p % 16 != 0)
        return BIN_FOREIGN;
    const uint16_t *offset = inside ? &window_bin_offsets[window_slice(p)]
                                    : &leaf->bin_offsets[slice_in_leaf((uintptr_t)p)];
    unsigned bin = load_relaxed(offset) / BIN_BYTES;
    if (bin != BIN_FOREIGN)
        *owner = owner_in(leaf, p);
    return bin;
}

void *map_entry_owner(const uint16_t *entry)
{
    /* Its distance in bytes, not its number: that is two instructions less. */
    size_t at = (size_t)((const char *)entry - (const char *)window_bin_offsets);
    const size_t words = sizeof(void *) / sizeof *entry;
    const struct map_leaf *leaf = window_leaf(at / sizeof *entry);
    const char *owners = (const char *)leaf->owners;
    return load_acquire((void *const *)(owners + at % sizeof leaf->bin_offsets * words));
}

/* How far to go on from an address to the next leaf, as a power of two: past a whole middle where
 * there is none. */
static unsigned region_bits(uintptr_t address)
{
    return load_relaxed(middle_at(address)) == NULL ? MIDDLE_BITS : MAP_LEAF_BITS;
}

static uintptr_t region_before(uintptr_t address)
{
    return (address >> region_bits(address) << region_bits(address)) - 1;
}

static uintptr_t region_after(uintptr_t address)
{
    return ((address >> region_bits(address)) + 1) << region_bits(address);
}

const void *map_below(const void *p)
{
    uintptr_t address = (uintptr_t)p;
    for (; address >> ADDRESS_BITS == 0; address = region_before(address)) {
        const struct map_leaf *leaf = leaf_at(address);
        for (size_t i = leaf != NULL ? slice_in_leaf(address) + 1 : 0; i-- > 0;)
            if (load_relaxed(&leaf->owners[i]) != NULL)
                return (const void *)(address / LEAF * LEAF + i * SLICE);
    }
    return NULL;
}

static void spare_push(struct spare **list, void *piece)
{
    ASSERT(lock_held(&map_lock));
    struct spare *first = piece;
    if (*list != NULL)
        first->next = *list;
    *list = first;
}

static void *spare_pop(struct spare **list, size_t bytes)
{
    ASSERT(lock_held(&map_lock));
    struct spare *first = *list;
    if (first == NULL) {
        first = meta_take_pages(bytes);
        add_relaxed(&taken, first != NULL ? round_up(bytes, os_page) : 0);
    } else {
        *list = first->next;
        if (*list != NULL)
            first->next = NULL;
    }
    return first;
}

bool map_cover_any(struct map_room *room)
{
    lock_take(&map_lock);
    room->leaf = spare_pop(&spare_leaves, sizeof *room->leaf);
    room->middle = room->leaf != NULL ? spare_pop(&spare_middles, sizeof *room->middle) : NULL;
    if (room->leaf != NULL && room->middle == NULL)
        spare_push(&spare_leaves, room->leaf);
    lock_release(&map_lock);
    return room->middle != NULL;
}

void map_cover_by(const void *p, const struct map_room *room)
{
    ASSERT((uintptr_t)p >> ADDRESS_BITS == 0);
    struct map_middle **middle = middle_at((uintptr_t)p);
    lock_take(&map_lock);
    if (*middle == NULL)
        store_release(middle, room->middle);
    else
        spare_push(&spare_middles, room->middle);
    struct map_leaf **leaf = leaf_in(*middle, (uintptr_t)p);
    if (*leaf == NULL)
        store_release(leaf, room->leaf);
    else
        spare_push(&spare_leaves, room->leaf);
    lock_release(&map_lock);
}

bool map_cover(const void *start, size_t length)
{
    ASSERT(length >= 1);
    uintptr_t address = (uintptr_t)start, last = address + length - 1;
    if (last >> ADDRESS_BITS != 0)
        return false;
    for (address -= address % LEAF; address <= last; address += LEAF) {
        struct map_room room;
        if (leaf_at(address) != NULL)
            continue;
        if (!map_cover_any(&room))
            return false;
        map_cover_by((const void *)address, &room);
    }
    return true;
}

/* The two words of a slice that the map covers, as the calling thread knows. */
struct entry {
    uint16_t *offset;
    void **owner;
};

static inline struct entry entry_in(struct map_leaf *leaf, uint16_t *offsets, size_t slice)
{
    ASSERT(leaf != NULL);
    return (struct entry){&offsets[slice], &leaf->owners[slice % LEAF_SLICES]};
}

static inline struct entry entry_in_window(const void *p)
{
    size_t slice = window_slice(p);
    return entry_in(window_leaf(slice), window_bin_offsets, slice);
}

static struct entry entry_outside(const void *p)
{
    struct map_leaf *leaf = leaf_outside((uintptr_t)p);
    return entry_in(leaf, leaf->bin_offsets, slice_in_leaf((uintptr_t)p));
}

static struct entry entry_at(const void *p)
{
    return in_window(p) ? entry_in_window(p) : entry_outside(p);
}

void map_set(const void *start, size_t slices, unsigned bin, void *owner)
{
    ASSERT(slices >= 1 && bin * BIN_BYTES <= UINT16_MAX);
    ASSERT((owner == NULL) == (bin == BIN_FOREIGN));
    for (size_t i = 0; i < slices; i++) {
        struct entry entry = entry_at((const char *)start + i * SLICE);
        store_release(entry.owner, owner);
        store_relaxed(entry.offset, (uint16_t)(bin * BIN_BYTES));
    }
}

static inline bool entry_change(struct entry entry, unsigned from, unsigned to)
{
    uint16_t before = (uint16_t)(from * BIN_BYTES);
    return __atomic_compare_exchange_n(entry.offset, &before, (uint16_t)(to * BIN_BYTES), false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void *map_clear(const void *p, unsigned bin)
{
    ASSERT(bin != BIN_FOREIGN);
    struct entry entry = entry_at(p);
    if (!entry_change(entry, bin, BIN_FOREIGN))
        return NULL;
    void *owner = load_acquire(entry.owner);
    store_relaxed(entry.owner, NULL);
    return owner;
}

/* A thread that frees the block changes the entry only from "in use", so until that is stored no
 * other thread stores here. */
static inline void *whole_taken(struct entry entry)
{
    ASSERT(load_relaxed(entry.offset) == BIN_WHOLE_FREE * BIN_BYTES);
    store_relaxed(entry.offset, BIN_WHOLE * BIN_BYTES);
    return load_acquire(entry.owner);
}

static inline void *whole_freed(struct entry entry)
{
    return entry_change(entry, BIN_WHOLE, BIN_WHOLE_FREE) ? load_acquire(entry.owner) : NULL;
}

/* Functions of their own, so that the others need no frame. */
static SLOW void *taken_outside(const void *p) { return whole_taken(entry_outside(p)); }
static SLOW void *freed_outside(const void *p) { return whole_freed(entry_outside(p)); }

SLOW void *map_whole_taken(const void *p)
{
    return in_window(p) ? whole_taken(entry_in_window(p)) : taken_outside(p);
}

SLOW void *map_whole_freed(const void *p)
{
    return in_window(p) ? whole_freed(entry_in_window(p)) : freed_outside(p);
}

bool map_next(uintptr_t *address)
{
    for (uintptr_t at = *address; at >> ADDRESS_BITS == 0; at = region_after(at)) {
        const struct map_leaf *leaf = leaf_at(at);
        for (size_t i = leaf != NULL ? slice_in_leaf(at) : LEAF_SLICES; i < LEAF_SLICES; i++) {
            *address = at / LEAF * LEAF + i * SLICE;
            if (load_relaxed(&leaf->owners[i]) != NULL ||
                load_relaxed(bin_offset_at((const void *)*address)) != 0)
                return true;
        }
    }
    return false;
}

size_t map_bytes(void) { return load_relaxed(&taken); }

const struct watch_map watch_map = {
    .bytes = sizeof watch_map,
    .root_entries = MIDDLES,
    .middle_entries = MIDDLE_LEAVES,
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
    .window_base = WINDOW_BASE,
    .window_slices = WINDOW_SLICES,
    .superslabs_bytes = WIDE_BASE + WIDE - WINDOW_BASE,
};
