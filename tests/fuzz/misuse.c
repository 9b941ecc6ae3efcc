/* The calls of heap.c with wrong ones in between, in a process that continues after each
 * (abort_on_misuse=off). An error that is documented to be found at once must be reported by the
 * wrong call, blocks in use must not change, and the heap check must find nothing after all is
 * freed. */
#define _GNU_SOURCE /* process_vm_readv */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "back/map.h"
#include "base/policy.h"
#include "base/text.h"
#include "front/cache.h"
#include "hakmem/hakmem.h"
#include "model.h"
#include "os/module.h"
#include "os/os.h"
#include "report/report.h"

static unsigned char *stale[256]; /* where blocks began that were freed */

/* ---- addresses ---- */

static const struct block *block_at(const void *p)
{
    for (const struct block *block = blocks; block < blocks + BLOCKS; block++)
        if (block->p != NULL && (uintptr_t)p - (uintptr_t)block->p < block->usable)
            return block;
    return NULL;
}

/* Any address, mostly in or near a block that is or was. */
static void *next_address(struct bytes *bytes)
{
    static char here[64];
    unsigned kind = next_byte(bytes);
    struct block *block = next_block(bytes);
    char *near = block->p != NULL ? (char *)block->p : (char *)stale[block - blocks];
    switch (kind % 12) {
    case 0:
        return near + next_byte(bytes);
    case 1:
        return near + next_byte(bytes) * 16;
    case 2:
        return near - next_byte(bytes) * 16;
    case 3:
        return near + (block->p != NULL ? block->usable : 0) * next_byte(bytes);
    case 4:
        return near + next_byte(bytes) * SLICE;
    case 5:
        return (char *)WINDOW_BASE + (next_number(bytes, 5) & (WINDOW - 1));
    case 6:
        return here + next_byte(bytes) % 64;
    case 7:
        return &here[0] + ((char *)&kind - here) + next_byte(bytes); /* of the stack */
    case 8:
        return (char *)&hakmem_malloc + next_byte(bytes);
    case 9:
        return (void *)next_number(bytes, 8);
    default:
        return stale[next_byte(bytes)];
    }
}

/* Whether p can be read, and has the mark that free leaves in small blocks. */
static bool has_seal(const unsigned char *p)
{
    uint64_t word;
    struct iovec to = {&word, sizeof word}, from = {(void *)(p + 8), sizeof word};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof word && word == SEAL;
}

/* ---- wrong calls ---- */

enum way { FREE, FREE_SIZED, FREE_ALIGNED, REALLOC, USABLE, WAYS };

/* Whether the map takes p for the start of a small block: the only wrong address of which no call
 * is told at once, where it has no seal. */
static bool looks_right(const unsigned char *p)
{
    unsigned bin = map_bin(p);
    return bin >= BIN_FIRST && address_describe(p).start == (uintptr_t)p;
}

static void call_wrongly(unsigned char *p, enum way way, size_t size)
{
    bool may_pass = looks_right(p) && !has_seal(p);
    if (shows())
        fprintf(stderr, "%p: way %d, size %zu, bin %u%s\n", (void *)p, (int)way, size, map_bin(p),
                may_pass ? ", looks right" : "");
    unsigned before = reports;
    errno = 0;
    if (way == FREE) {
        hakmem_free(p);
    } else if (way == FREE_SIZED) {
        hakmem_free_sized(p, size);
    } else if (way == FREE_ALIGNED) {
        hakmem_free_aligned_sized(p, 16, size);
    } else if (way == REALLOC) {
        /* What stays where it is may be left unlooked at, like its size below. */
        unsigned char *other = hakmem_realloc(p, size);
        MUST(may_pass || other == NULL || (other == p && looks_right(p)), "realloc of %p: %p",
             (void *)p, (void *)other);
        MUST(other != NULL || errno == EINVAL || size == 0, "realloc: errno %d", errno);
        errno = 0;
        if (other != NULL)
            hakmem_free(other);
    } else {
        /* Of a small block that is free it may tell the size: it looks at no seal. */
        size_t usable = hakmem_malloc_usable_size(p);
        MUST(looks_right(p) || (usable == 0 && reports > before), "%p: %zu bytes, %u reports",
             (void *)p, usable, reports - before);
        return;
    }
    MUST(errno == 0, "errno is changed to %d", errno);
    MUST(may_pass || reports > before || p == NULL, "%p: no report", (void *)p);
    damaged = damaged || may_pass;
}

static void act_wrong(struct bytes *bytes)
{
    enum way way = next_byte(bytes) % WAYS;
    size_t size = next_byte(bytes) * 16;
    unsigned char *p = next_address(bytes);
    const struct block *block = block_at(p);
    if (p != NULL && (block == NULL || block->p != p))
        call_wrongly(p, way, size);
    if (block != NULL)
        block_check(block);
}

/* Freed, and freed again at once or later. */
static void act_twice(struct bytes *bytes)
{
    struct block *block = next_block(bytes);
    unsigned how = next_byte(bytes);
    unsigned char *p = block->p;
    if (p == NULL)
        return;
    block_end(block, how);
    stale[block - blocks] = p;
    if (how >= 128)
        call_wrongly(p, how % WAYS, 16);
}

/* The size may be any; the block is freed. */
static void act_wrong_size(struct bytes *bytes)
{
    struct block *block = next_block(bytes);
    size_t size = next_size(bytes);
    size_t align = next_byte(bytes) % 4 == 0 ? next_align(bytes) : 0;
    if (block->p == NULL)
        return;
    block_check(block);
    stale[block - blocks] = block->p;
    unsigned before = reports;
    if (align != 0)
        hakmem_free_aligned_sized(block->p, align, size);
    else
        hakmem_free_sized(block->p, size);
    MUST(align != 0 || size <= block->usable || reports > before || damaged,
         "%zu bytes said of a block of %zu: no report", size, block->usable);
    blocks_bytes -= block->usable;
    block->p = NULL;
}

/* Written to after it was freed: the mark is gone. */
static void act_write(struct bytes *bytes)
{
    unsigned char *p = stale[next_byte(bytes)];
    const struct block *block = p != NULL ? block_at(p) : NULL;
    if (block == NULL && p != NULL && has_seal(p))
        memset(p, next_byte(bytes), 16);
}

/* What a report says of an address, whatever is there, in a text of any room. */
static void act_describe(struct bytes *bytes)
{
    const unsigned char *p = next_address(bytes);
    struct address place = address_describe(p);
    const struct block *block = block_at(p);
    if (block != NULL && !damaged)
        MUST((place.kind == ADDRESS_CLASS || place.kind == ADDRESS_LARGE ||
              place.kind == ADDRESS_GUARDED) &&
                 place.start == (uintptr_t)block->p &&
                 (place.size == block->usable || place.size == block->usable + hardening.canary),
             "%p: place %d, at %zx, %zu bytes", (const void *)p, (int)place.kind, place.start,
             place.size);
    char words[256];
    size_t room = next_byte(bytes) + 1;
    memset(words, 0x55, sizeof words);
    os_mapping(p, words, room < 2 ? 2 : room);
    MUST(memchr(words, '\0', room < 2 ? 2 : room) != NULL, "a line without end");
    struct text text;
    text_init(&text, words, room);
    module_add_name(&text, (uintptr_t)p);
    MUST(strlen(words) < room, "a text without end");
    map_below(p);
}

/* ---- an input ---- */

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    option_default("HAKMEM_ABORT_ON_MISUSE", "off");
    heap_start();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const wrong[])(struct bytes *) = {act_wrong,      act_wrong, act_twice,
                                                    act_wrong_size, act_write, act_describe};
    struct bytes bytes = {data, size};
    memset(stale, 0, sizeof stale);
    while (bytes.left > 0) {
        unsigned kind = next_byte(&bytes);
        if (kind < 128)
            heap_act(&bytes);
        else
            thread_does(kind / 8 % THREADS, wrong[kind % 8 % 6], &bytes);
    }
    heap_end();
    return 0;
}
