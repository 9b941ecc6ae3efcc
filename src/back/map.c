#include "back/map.h"

#include "os/os.h"

#define REGION_BITS 32
#define REGIONS 0x10000u /* 48 bits of address */
#define REGION_SLICES ((size_t)1 << (REGION_BITS - SLICE_BITS))

struct map_leaf {
    void *owners[REGION_SLICES];    /* atomic; changes under the lock of what it names */
    uint16_t places[REGION_SLICES]; /* atomic */
};

void *const window_base = (void *)WINDOW_BASE;
const uintptr_t window_grains = ((uintptr_t)1 << (WINDOW_BITS - 4)) - 1;
bool window_left;
uint16_t window_places[WINDOW_SLICES];

static struct map_leaf *root[REGIONS]; /* atomic; set once, under the lock */
static struct lock map_lock;

static struct map_leaf *leaf_at(uintptr_t address)
{
    uintptr_t region = address >> REGION_BITS;
    return region < REGIONS ? load_acquire(&root[region]) : NULL;
}

static size_t slice_in_leaf(uintptr_t address) { return (uint32_t)address >> SLICE_BITS; }

unsigned map_bin(const void *p)
{
    struct map_leaf *leaf = leaf_at((uintptr_t)p);
    if (leaf == NULL || (uintptr_t)p % 16 != 0)
        return BIN_FOREIGN;
    return load_relaxed(&leaf->places[slice_in_leaf((uintptr_t)p)]) / BIN_BYTES;
}

void *map_owner(const void *p)
{
    struct map_leaf *leaf = leaf_at((uintptr_t)p);
    return leaf == NULL ? NULL : load_acquire(&leaf->owners[slice_in_leaf((uintptr_t)p)]);
}

bool map_cover(const void *start, size_t length)
{
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
            struct map_leaf *leaf = os_map(round_up(sizeof *leaf, os_page));
            covered = leaf != NULL;
            if (covered) {
                os_name(leaf, sizeof *leaf, "hakmem: map");
                store_release(&root[region], leaf);
            }
        }
        lock_release(&map_lock);
    }
    return covered;
}

void map_set(const void *start, size_t slices, unsigned bin, void *owner)
{
    uintptr_t address = (uintptr_t)start;
    uint16_t place = (uint16_t)(bin * BIN_BYTES);
    for (size_t i = 0; i < slices; i++, address += SLICE) {
        struct map_leaf *leaf = leaf_at(address);
        store_release(&leaf->owners[slice_in_leaf(address)], owner);
        store_relaxed(&leaf->places[slice_in_leaf(address)], place);
        if (address - WINDOW_BASE < WINDOW)
            store_relaxed(&window_places[address / SLICE % WINDOW_SLICES], place);
    }
}

void *map_clear(const void *p)
{
    struct map_leaf *leaf = leaf_at((uintptr_t)p);
    size_t slice = slice_in_leaf((uintptr_t)p);
    store_relaxed(&leaf->places[slice], (uint16_t)0);
    if ((uintptr_t)p - WINDOW_BASE < WINDOW)
        store_relaxed(&window_places[(uintptr_t)p / SLICE % WINDOW_SLICES], (uint16_t)0);
    return __atomic_exchange_n(&leaf->owners[slice], NULL, __ATOMIC_ACQ_REL);
}

void map_fork_lock(void) { lock_take(&map_lock); }
void map_fork_unlock(void) { lock_release(&map_lock); }
