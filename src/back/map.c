#include "back/map.h"

#include "os/os.h"

struct map map;
const uintptr_t map_beyond = MAP_REGIONS;

static struct lock map_lock; /* protects the making of leaves */

static struct map_leaf *leaf_at(uintptr_t address)
{
    intptr_t distance = load_acquire(&map.root[map_region(address & ~(uintptr_t)15)]);
    if (distance == 0)
        return NULL;
    return (struct map_leaf *)((char *)map.nothing + distance);
}

static size_t slice_in_leaf(uintptr_t address) { return (uint32_t)address >> SLICE_BITS; }

void *map_owner(const void *p)
{
    struct map_leaf *leaf = leaf_at((uintptr_t)p);
    return leaf == NULL ? NULL : load_acquire(&leaf->owners[slice_in_leaf((uintptr_t)p)]);
}

bool map_cover(const void *start, size_t length)
{
    uintptr_t first = (uintptr_t)start >> MAP_REGION_BITS;
    uintptr_t last = ((uintptr_t)start + length - 1) >> MAP_REGION_BITS;
    if (last >= MAP_REGIONS)
        return false;
    for (uintptr_t region = first; region <= last; region++) {
        if (load_relaxed(&map.root[region]) != 0)
            continue;
        lock_take(&map_lock);
        if (map.root[region] == 0) {
            char *leaf = os_map(round_up(sizeof(struct map_leaf), os_page));
            if (leaf == NULL) {
                lock_release(&map_lock);
                return false;
            }
            os_name(leaf, sizeof(struct map_leaf), "hakmem: map");
            store_release(&map.root[region], leaf - (char *)map.nothing);
        }
        lock_release(&map_lock);
    }
    return true;
}

void map_set(const void *start, size_t slices, unsigned bin, void *owner)
{
    uintptr_t address = (uintptr_t)start;
    for (size_t i = 0; i < slices; i++, address += SLICE) {
        struct map_leaf *leaf = leaf_at(address);
        size_t slice = slice_in_leaf(address);
        store_release(&leaf->owners[slice], owner);
        store_relaxed(&leaf->places[slice], (uint16_t)(bin * BIN_BYTES));
    }
}

void map_fork_lock(void) { lock_take(&map_lock); }
void map_fork_unlock(void) { lock_release(&map_lock); }
