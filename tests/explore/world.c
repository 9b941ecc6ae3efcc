#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include "world.h"
#include "front/owners.h"
#include "front/refill.h"

#include <string.h>
#include <sys/mman.h>

#include "back/huge.h"
#include "back/meta.h"
#include "back/reserve.h"
#include "back/slices.h"
#include "back/use.h"
#include "base/policy.h"
#include "explore.h"
#include "front/cache.h"
#include "front/stacks.h"
#include "heap/shards.h"
#include "heap/slab.h"
#include "heap/transfer.h"
#include "profile/guarded.h"
#include "report/report.h"

uint16_t window_bin_offsets[WINDOW_SLICES] __attribute__((section("places,\"aw\",@nobits#")));
unsigned world_held, world_free;
bool world_closed;
static void *mailbox;
static char arena[96 * KiB] __attribute__((aligned(4096)));
static size_t arena_used;
static unsigned cls;
static size_t block_size;
static struct cache *caches[THREADS_MOST];
static void **behind[THREADS_MOST]; /* its first array: the next one's, not used here */

void lock_is_left(void)
{
    explore_fail("thread %u waits for a lock that it holds", explore_self());
}

/* ---- blocks ---- */

static void *block(unsigned number) { return (char *)WINDOW_BASE + SLICE + number * block_size; }

static unsigned block_bit(const void *p)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (p == block(i))
            return 1u << i;
    explore_fail("%p is no block", p);
}

static void *to_program(void *p)
{
    if (p == NULL || p == not_entered())
        return NULL;
    unsigned bit = block_bit(p);
    EXPECT(!(world_free & bit), "block %u goes to the program and is free", bit);
    EXPECT(!(world_held & bit), "block %u goes to the program and is in use", bit);
    world_held |= bit;
    return p;
}

/* Few at a time, so that two threads have some. */
size_t shard_take(unsigned index, unsigned of, void **end, size_t n)
{
    (void)index, (void)of;
    size_t got = 0;
    for (unsigned i = 0; i < BLOCKS && got < n && got < 2; i++)
        if (world_free & 1u << i) {
            world_free &= ~(1u << i);
            *--end = block(i);
            got++;
        }
    return got;
}

/* A block that is free is passed over: where a fork came in between, it may be. */
struct finding shards_put(void **blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned bit = block_bit(blocks[i]);
        EXPECT(!(world_held & bit), "block %u is freed, and the program's", bit);
        if (world_free & bit)
            return (struct finding){MISUSE_FREE, blocks[i]};
        world_free |= bit;
    }
    return (struct finding){MISUSE_NONE, NULL};
}

bool shards_attract(const void *p, unsigned *shard) { return (void)p, (void)shard, false; }
unsigned shard_of(const void *p) { return (void)p, 0; }
bool shard_compacts(unsigned index, unsigned of) { return (void)index, (void)of, false; }
unsigned shard_join(void) { return 0; }
void shard_leave(unsigned index) { (void)index; }
bool whole_resize(const void *p, size_t n) { return (void)p, (void)n, false; }
size_t transfer_take(unsigned of, void **end, size_t n) { return (void)of, (void)end, (void)n, 0; }
size_t transfer_put(unsigned of, void **p, size_t n) { return (void)of, (void)p, (void)n, 0; }

/* ---- other floors ---- */

static void *cut(size_t bytes, size_t align)
{
    arena_used = round_up(arena_used, align);
    void *p = arena + arena_used;
    arena_used += bytes;
    EXPECT(arena_used <= sizeof arena, "the arena is too small");
    return p;
}

struct use use;
struct limits limits = {.keep = SIZE_MAX};
bool use_returns(void) { return true; }
bool use_low(void) { return false; }
size_t use_live(void) { return 0; }
size_t purge_due;
void *meta_take(size_t bytes) { return cut(bytes, CACHE_LINE); }
void *meta_take_pages(size_t bytes) { return cut(bytes, 4096); }
void meta_give(void *p, size_t bytes) { (void)p, (void)bytes; }
size_t meta_size(size_t bytes) { return bytes; }
void *reserve_take(size_t n, size_t align) { return (void)n, (void)align, NULL; }
enum misuse reserve_give(void *p) { return (void)p, MISUSE_NONE; }
bool classes_close(const struct ahead_offsets *ahead) { return (void)ahead, true; }
unsigned map_bin(const void *p) { return (void)p, BIN_FIRST + cls; }
bool profile_used;
bool samples_forget(const void *p) { return (void)p, false; }
struct guarded_region guarded_region;
enum misuse guarded_give(void *p, const struct guarded_call *by)
{
    return (void)p, (void)by, MISUSE_NONE;
}
enum misuse huge_give(void *p) { return (void)p, MISUSE_NONE; }
bool slices_try_stop(void) { return true; }
void slices_go_on(void) {}
bool slab_edge_stands(const void *p, unsigned of) { return (void)p, (void)of, true; }

/* ---- the program ---- */

void world_begin(size_t size)
{
    static bool mapped;
    if (!mapped)
        mmap((void *)(WINDOW_BASE + SLICE), SLICE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    mapped = true;
    cls = class_of(size);
    block_size = size_classes[cls].size;
    extern char __data_start[];
    explore_restore(__data_start, (size_t)((char *)window_bin_offsets - __data_start));
    explore_restore(block(0), BLOCKS * block_size);
    window_bin_offsets[1] = (uint16_t)((BIN_FIRST + cls) * BIN_BYTES);
    world_free = (1u << BLOCKS) - 1;
    world_held = 0;
    explore_watch(&mailbox, sizeof mailbox, "mailbox");
    explore_watch(&closings, sizeof closings, "closings");
    cache_mine = &cache_none;
    for (unsigned i = 0; i < THREADS_MOST; i++)
        explore_own_word(&cache_mine, i);
    explore_own_number(&lock_number);
}

struct cache *world_cache(unsigned thread)
{
    struct cache *cache = cache_new();
    program_free(program_malloc()); /* the stack is there */
    cache->mine = explore_own_word(&cache_mine, thread);
    cache_mine = &cache_none;
    struct bin *bin = &cache->bins[BIN_FIRST + cls];
    explore_watch(cache->mine, sizeof *cache->mine, "mine");
    explore_watch(&bin->topmost, sizeof bin->topmost, "topmost");
    explore_watch(&bin->top, sizeof bin->top, "top");
    explore_watch(&bin->limit, sizeof bin->limit, "limit");
    explore_watch(cache->chunks[0], CHUNK_FIRST, "slot");
    behind[thread] = cache->cold[cls].base + cache->cold[cls].room + 1;
    explore_watch(cache->lock, sizeof *cache->lock, "cache lock");
    caches[thread] = cache;
    return cache;
}

/* What a thread finds out where its cache is not at hand; null where it is to do without. */
static struct cache *thread_cache_again(void)
{
    struct cache *cache = caches[explore_self()];
    if (closed_for(CLOSED_CHECKED)) {
        cache_shut(cache);
        return NULL;
    }
    return cache_resume(cache) ? cache : NULL;
}

static void *take_alone(void)
{
    void *p = NULL;
    if (!lock_enter(&cacheless_lock))
        return not_entered();
    (void)shard_take(0, cls, &p + 1, 1);
    lock_release(&cacheless_lock);
    return p;
}

void *program_malloc(void)
{
    void *p;
    bool closed = world_closed;
    struct cache *cache = cache_current();
    if (cache_pop(cache, class_bin_offset(block_size), &p)) {
        EXPECT(!closed, "malloc by the fast path, though all caches are closed");
        return to_program(p);
    }
    if (cache == &cache_none)
        cache = thread_cache_again();
    if (cache == NULL)
        return to_program(take_alone());
    if (load_relaxed(&registry_has_orphans))
        orphan_take_in();
    if (!lock_enter(cache->lock))
        return to_program(not_entered());
    struct finding found = {MISUSE_NONE, NULL};
    p = cache_refill(cache, cls, &found);
    lock_release(cache->lock);
    EXPECT(found.what == MISUSE_NONE, "a refill finds misuse");
    if (p != NULL)
        block_unseal(p);
    return to_program(p);
}

static struct finding give_inside(struct cache *cache, void *p)
{
    struct lock *its = cache_lock_of(cache);
    if (!lock_enter(its))
        return deferred_put(p);
    struct finding found = cache != NULL ? cache_give(cache, cls, p) : shards_put(&p, 1);
    lock_release(its);
    return found;
}

void program_free(void *p)
{
    if (p == NULL)
        return;
    block_unseal(p); /* what the program wrote */
    unsigned bit = block_bit(p);
    EXPECT(world_held & bit, "the program frees block %u, which it does not have", bit);
    world_held &= ~bit;
    bool closed = world_closed;
    struct cache *cache = cache_current();
    if (cache_push(cache, p)) {
        EXPECT(!closed, "free by the fast path, though all caches are closed");
        return;
    }
    if (cache == &cache_none)
        cache = thread_cache_again();
    block_seal(p);
    struct finding found = give_inside(cache, p);
    EXPECT(found.what == MISUSE_NONE, "free of block %u finds misuse %d", bit, (int)found.what);
}

void program_end(void)
{
    struct cache *cache = caches[explore_self()];
    void *word = cache->mine;
    struct finding found = cache_delete(cache);
    EXPECT(found.what == MISUSE_NONE, "the thread's end finds misuse %d", (int)found.what);
    explore_end_word(word);
    caches[explore_self()] = NULL;
}

void program_hand(void *p) { store_release(&mailbox, p); }

void *program_receive(void)
{
    void *p;
    while ((p = load_acquire(&mailbox)) == NULL)
        ;
    return p;
}

void world_keeps_only(const void *p) { world_held = block_bit(p); }

void world_audit(struct cache *cache)
{
    for (unsigned i = 0; i < THREADS_MOST; i++)
        EXPECT(behind[i] == NULL || *behind[i] == NULL, "written behind a full stack");
    struct finding found = cache_empty(cache);
    EXPECT(found.what == MISUSE_NONE, "the cache held a block that was free already");
    EXPECT((world_held | world_free) == (1u << BLOCKS) - 1, "lost: %#x, held %#x, free %#x",
           ~(world_held | world_free) & ((1u << BLOCKS) - 1), world_held, world_free);
}
