/* The guard pages of a hardened heap's slabs: where they are, and that nobody can touch them. */
#define _GNU_SOURCE
#include "heap/hardening.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "back/map.h"
#include "back/superslabs.h"
#include "base/policy.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "learn/laws.h"
#include "os/lock.h"
#include "os/os.h"
#include "unit.h"

static bool usable(unsigned cls, unsigned block)
{
    return (guard_word(cls, block / 64) >> block % 64 & 1) != 0;
}

static bool guarded(unsigned cls, size_t offset)
{
    return (guard_pages_of(cls) >> offset / os_page & 1) != 0;
}

/* The first guard page at or behind an offset. */
static size_t next_guard(unsigned cls, size_t offset)
{
    size_t at = round_up(offset, os_page);
    while (at < SLICE && !guarded(cls, at))
        at += os_page;
    return at;
}

static void each_block_has_a_guard_behind_it(void)
{
    unsigned within_a_page = 0, classes = 0;
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        const struct size_class *c = &size_classes[cls];
        unsigned places = 0;
        size_t farthest = 0;
        for (unsigned i = 0; i < c->blocks; i++) {
            size_t start = (size_t)i * c->size, end = start + c->size;
            if (!usable(cls, i))
                continue;
            places++;
            EXPECT(c->blocks == 1 || next_guard(cls, start) >= end); /* none of its own pages */
            EXPECT(c->blocks == 1 || next_guard(cls, end) < SLICE);
            farthest = larger(farthest, next_guard(cls, end) - end);
        }
        EXPECT(places >= 1);
        EXPECT_EQUAL(places, guard_places(cls));
        for (unsigned i = c->blocks; i < (c->blocks + 63u) / 64 * 64; i++)
            EXPECT(!usable(cls, i));
        if (c->blocks == 1) {
            EXPECT_EQUAL(guard_pages_of(cls), 0);
            continue;
        }
        EXPECT(guarded(cls, SLICE - 1) && !guarded(cls, 0));
        EXPECT(farthest < 4 * os_page);
        within_a_page += farthest < os_page;
        classes++;
        EXPECT(places * 3 >= c->blocks);
        size_t pages = SLICE / os_page - count_bits(guard_pages_of(cls));
        EXPECT(places * c->size * 4 >= pages * os_page * 3);
    }
    EXPECT(within_a_page * 4 >= classes * 3);
}

static bool readable(const char *p)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)p, 1};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

static void expect_pages(const struct slab *slab)
{
    for (size_t at = 0; at < SLICE; at += os_page)
        EXPECT_EQUAL(readable(slab->base + at), !guarded(slab->cls, at));
}

/* All blocks of some slabs, and back; the slices serve other classes then. */
static void slabs_come_and_go(unsigned cls)
{
    enum { SLABS = 5 };
    static void *blocks[SLABS * 4096];
    const struct size_class *c = &size_classes[cls];
    size_t n = (size_t)guard_places(cls) * SLABS;
    for (size_t got = 0; got < n;) {
        size_t more = shard_take(0, cls, blocks + n - got, n - got);
        EXPECT(more > 0);
        got += more;
    }
    for (size_t i = 0; i < n; i++) {
        const struct slab *slab = map_owner(blocks[i]);
        EXPECT(slab != NULL && slab->cls == cls);
        EXPECT(slab_begins(slab, blocks[i]) && !guard_pages_bar(blocks[i], cls));
        EXPECT_EQUAL(slab_usable(blocks[i], slab), class_usable(cls));
        EXPECT(block_is_zero(blocks[i], cls));
        memset(blocks[i], 1, c->size);
        if (blocks[i] == slab->base)
            expect_pages(slab);
    }
    const struct slab *first = map_owner(blocks[0]);
    for (unsigned i = 0; i < c->blocks; i++)
        if (!usable(cls, i)) {
            void *never = first->base + (size_t)i * c->size;
            EXPECT(guard_pages_bar(never, cls));
            EXPECT_EQUAL(shards_put(&never, 1).what, MISUSE_FREE);
        }
    for (size_t i = 0; i < n; i++)
        memset(blocks[i], 0, c->size);
    EXPECT_EQUAL(shards_put(blocks, n).what, MISUSE_NONE);
}

static void *block_of(unsigned cls)
{
    void *block;
    EXPECT_EQUAL(shard_take(0, cls, &block + 1, 1), 1);
    return block;
}

/* Where the slab of a block begins, which is given back. */
static char *place_of_slab(void *block)
{
    char *base = ((struct slab *)map_owner(block))->base;
    EXPECT_EQUAL(shards_put(&block, 1).what, MISUSE_NONE);
    return base;
}

/* While slices are free that have the guard pages of a class, its slabs take them and no others, so
 * the pages stay as they are. */
static void slabs_follow_those_of_their_class(void)
{
    unsigned small = class_of(64), other = class_of(6 * KiB);
    EXPECT((guard_pages_of(small) & ~guard_pages_of(other)) != 0);
    EXPECT((guard_pages_of(other) & ~guard_pages_of(small)) != 0);
    void *block = block_of(small), *another = block_of(other);
    char *base = place_of_slab(block), *of_other = place_of_slab(another);
    EXPECT(base != of_other);
    for (unsigned i = 0; i < 10; i++) {
        EXPECT(place_of_slab(block_of(small)) == base);
        EXPECT(place_of_slab(block_of(other)) == of_other);
    }
}

#define SUPERSLABS 1000

/* A heap that makes and ends superslabs for long has them in some places, not in ever more of the
 * window: each place has pages of the map that stay. */
static void superslabs_return_to_their_places(void)
{
    static char *places[SUPERSLABS];
    size_t count = 0;
    lock_take(&superslabs_lock);
    for (unsigned i = 0; i < SUPERSLABS; i++) {
        char *base = slot_map(SUPERSLAB);
        EXPECT(base != NULL);
        size_t at = 0;
        while (at < count && places[at] != base)
            at++;
        places[at] = base;
        count += at == count;
        EXPECT(os_unmap(base, SUPERSLAB));
        slot_unmapped(base);
    }
    lock_release(&superslabs_lock);
    EXPECT(count >= 32 && count <= SLOTS_LEFT + 1);
}

int main(void)
{
    const struct os_given given = os_ask();
    os_start(&given);
    map_start();
    policy.preset = 1;
    policy.extra_calls = 1;
    hardening_start();
    slots_start(os_random());
    shards_start();
    if (guard_plans == NULL) {
        puts("guard pages: this kernel has none: not tested");
        return 77;
    }
    each_block_has_a_guard_behind_it();
    static struct lock held = LOCK(PURGE); /* what the callers of this floor hold: os/lock.h */
    lock_take(&held);
    superslabs_return_to_their_places();
    slabs_follow_those_of_their_class();
    for (unsigned round = 0; round < 3; round++)
        for (unsigned cls = 0; cls < CLASS_SLICES_FIRST; cls += 1 + round)
            slabs_come_and_go(cls);
    lock_release(&held);
    return 0;
}
