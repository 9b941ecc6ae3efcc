#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "hakmem/hakmem.h"
#include "heap/classes.h"
#include "life/purge.h"
#include "life/statistics.h"
#include "model.h"
#include "os/os.h"

/* ---- what is asked for ---- */

size_t next_size(struct bytes *bytes)
{
    static const size_t bounds[] = {
        CLASS_MOST, SLICE,    CLASS_SLICES_MOST, 1 * MiB,   2 * MiB,
        4 * MiB,    16 * MiB, 96 * KiB,          5 * SLICE,
    };
    unsigned kind = next_byte(bytes);
    size_t near = kind % 3;
    if (kind < 150) /* around a class's size */
        return size_classes[kind / 2].size + near - 1;
    if (kind < 190)
        return next_byte(bytes);
    if (kind < 210)
        return next_number(bytes, 2);
    if (kind < 220)
        return next_number(bytes, 3);
    if (kind < 247)
        return bounds[(kind - 220) / 3] + near - 1;
    if (kind < 250)
        return CLASS_SLICES_MOST + next_byte(bytes) * SLICE + near - 1;
    return SIZE_MAX - (next_number(bytes, 2) << (kind - 250) * 3);
}

size_t next_align(struct bytes *bytes)
{
    unsigned kind = next_byte(bytes);
    if (kind < 200)
        return (size_t)1 << kind % 22;
    if (kind < 230)
        return next_byte(bytes);
    return kind < 240 ? 0 : kind < 250 ? (size_t)1 << 63 : SIZE_MAX - kind;
}

struct block *next_block(struct bytes *bytes) { return &blocks[next_byte(bytes)]; }

/* ---- acts ---- */

/* One that ends is followed by another in its place. */
static bool may_begin(struct block *block, size_t size)
{
    if (block->p != NULL)
        block_end(block, 0);
    errno = 0;
    kernel_failed = false;
    return size >= IMPOSSIBLE || block_fits(size);
}

static void begin(struct block *block, void *p, size_t size, size_t align)
{
    block_begin(block, p, size, align);
    block_check_apart(block);
}

static void act_malloc(struct bytes *bytes)
{
    struct block *block = next_block(bytes);
    size_t size = next_size(bytes);
    if (may_begin(block, size))
        begin(block, hakmem_malloc(size), size, 0);
}

static void act_calloc(struct bytes *bytes)
{
    struct block *block = next_block(bytes);
    size_t count = next_byte(bytes) + 1, size = next_size(bytes), all;
    if (__builtin_mul_overflow(count, size, &all))
        all = SIZE_MAX;
    if (!may_begin(block, all))
        return;
    unsigned char *p = hakmem_calloc(size, count);
    if (p != NULL)
        check_zero(p, all);
    begin(block, p, all, 0);
}

static void act_aligned(struct bytes *bytes)
{
    struct block *block = next_block(bytes);
    unsigned how = next_byte(bytes) % 5;
    size_t align = next_align(bytes), size = next_size(bytes);
    bool power = is_power_of_two(align);
    size_t both;
    if (__builtin_add_overflow(size, align, &both))
        both = SIZE_MAX;
    if (!may_begin(block, both))
        return;
    void *p = NULL;
    switch (how) {
    case 0:
        p = hakmem_aligned_alloc(align, size);
        if (!power) {
            MUST(p == NULL && errno == EINVAL, "%p, errno %d", p, errno);
            return;
        }
        break;
    case 1:
        p = hakmem_memalign(align, size);
        if (align > IMPOSSIBLE) {
            MUST(p == NULL && (errno == EINVAL || errno == ENOMEM), "%p, errno %d", p, errno);
            return;
        }
        while (!is_power_of_two(align))
            align = align == 0 ? 1 : align + (align & -align);
        break;
    case 2: {
        int error = hakmem_posix_memalign(&p, align, size);
        MUST(errno == (error == ENOMEM ? ENOMEM : 0), "error %d, errno %d", error, errno);
        MUST((error == EINVAL) == (!power || align % sizeof(void *) != 0), "error %d", error);
        MUST((error == 0) == (p != NULL), "error %d and %p", error, p);
        errno = error;
        if (error == EINVAL)
            return;
        break;
    }
    case 3:
        align = os_page;
        p = hakmem_valloc(size);
        break;
    default:
        align = os_page;
        p = hakmem_pvalloc(size);
        if (p != NULL) /* that many are asked for */
            size = larger(round_up(size, os_page), os_page);
        break;
    }
    begin(block, p, align > IMPOSSIBLE ? SIZE_MAX : size, align);
}

static void act_realloc(struct bytes *bytes)
{
    struct block *block = next_block(bytes);
    unsigned count = next_byte(bytes) % 4;
    size_t size = next_size(bytes);
    if (count > 0 && __builtin_mul_overflow(size, count, &size))
        size = SIZE_MAX;
    if (size == 0) {
        block_end(block, 2);
        return;
    }
    if (size < IMPOSSIBLE && !block_fits(size))
        return;
    errno = 0;
    kernel_failed = false;
    struct block before = *block;
    unsigned char *p = count > 1 && size < IMPOSSIBLE
                           ? hakmem_reallocarray(before.p, size / count, count)
                           : hakmem_realloc(before.p, size);
    if (count > 1 && size < IMPOSSIBLE)
        size = size / count * count;
    if (p == NULL) {
        MUST(damaged || ((kernel_failed || size >= IMPOSSIBLE) && errno == ENOMEM),
             "null for %zu bytes, errno %d", size, errno);
        block_check(block);
        return;
    }
    MUST(errno == 0, "errno is changed to %d", errno);
    if (before.p != NULL) {
        block_check_content(&before, p, size);
        blocks_bytes -= before.usable;
        block->p = NULL;
    }
    /* One that was left where it is may be larger, or still as large where memory ran out. */
    begin(block, p, size, 1);
    if (kernel_failed)
        block->asked = block->usable; /* which a sized free can't know */
}

static void act_end(struct bytes *bytes)
{
    struct block *block = next_block(bytes);
    block_end(block, next_byte(bytes));
}

static void act_check_block(struct bytes *bytes) { block_check(next_block(bytes)); }

/* Many of a size, and of many, each `step`th: what moves between stacks, transfer caches and
 * slabs. */
static void act_many(struct bytes *bytes)
{
    size_t size = next_size(bytes);
    size_t from = next_byte(bytes) * 16, count = next_byte(bytes) * 8;
    bool zero = from % 32 == 0;
    for (size_t i = from; i < from + count && i < BLOCKS; i++) {
        if (blocks[i].p != NULL || !block_fits(size))
            continue;
        errno = 0;
        kernel_failed = false;
        unsigned char *p = zero ? hakmem_calloc(1, size) : hakmem_malloc(size);
        if (zero && p != NULL)
            check_zero(p, size < 64 ? size : 64);
        block_begin(&blocks[i], p, size, 0);
    }
    blocks_check_order();
}

static void act_end_many(struct bytes *bytes)
{
    size_t from = next_byte(bytes) * 16, count = next_byte(bytes) * 8;
    size_t step = next_byte(bytes) % 16 + 1;
    unsigned how = next_byte(bytes);
    for (size_t i = 0; i < count; i += step) {
        size_t at = how >= 128 ? from + count - 1 - i : from + i;
        if (at < BLOCKS)
            block_end(&blocks[at], how);
    }
}

/* Of blocks from one on those that are worth it, or all, move to the lowest places. */
static void act_move(struct bytes *bytes)
{
    size_t from = next_byte(bytes) * 16, count = next_byte(bytes) * 8;
    bool all = from % 64 == 0;
    size_t gain = hakmem_defrag_gain();
    MUST(damaged || gain <= PTRDIFF_MAX, "a gain of %zu bytes", gain);
    for (size_t i = from; i < from + count && i < BLOCKS; i++) {
        struct block before = blocks[i];
        errno = 0;
        kernel_failed = false;
        int hint = hakmem_defrag_hint(before.p);
        MUST(hint == 0 || (hint == 1 && before.p != NULL), "a hint of %d", hint);
        if (before.p == NULL || (!all && !hint) || !block_fits(before.asked))
            continue;
        unsigned char *p = hakmem_defrag_malloc(before.asked);
        if (p == NULL) {
            MUST(damaged || (kernel_failed && errno == ENOMEM), "errno %d", errno);
            continue;
        }
        memcpy(p, before.p, before.asked);
        block_check_content(&before, p, before.asked);
        hakmem_defrag_free(before.p);
        blocks_bytes -= before.usable;
        blocks[i].p = NULL;
        begin(&blocks[i], p, before.asked, 0);
    }
}

static void act_kernel(struct bytes *bytes)
{
    unsigned after = next_byte(bytes) % 16;
    kernel_fails(after, next_byte(bytes) % 8 + 1);
}

/* ---- acts on the whole heap ---- */

static void check_numbers(void)
{
    struct hakmem_stats s;
    hakmem_stats(&s, sizeof s);
    size_t sum = s.program + s.thread_caches + s.transfer + s.free_in_slabs + s.rest + s.retained +
                 s.untouched + s.kept + s.metadata + s.map;
    /* Of what the kernel gives, but gives nothing for to note it with, and then does not take back,
     * nothing is left but the addresses. */
    static size_t lost;
    if (kernel_kept)
        lost = s.mapped - sum;
    kernel_kept = false;
    MUST(sum <= s.mapped && s.mapped - sum == lost, "parts of %zu bytes and %zu lost, %zu mapped",
         sum, lost, s.mapped);
    MUST(s.mapped <= s.mapped_most, "%zu mapped, %zu at most", s.mapped, s.mapped_most);
    MUST(damaged || s.program == blocks_bytes, "the program has %zu bytes, not %zu", blocks_bytes,
         s.program);
}

static void check_glibc_numbers(void)
{
    struct hakmem_mallinfo2 info = hakmem_mallinfo2();
    MUST(info.arena == info.uordblks + info.fordblks, "an arena of %zu bytes", info.arena);
    MUST(damaged || info.uordblks <= blocks_bytes, "%zu bytes used", info.uordblks);
}

static void check_heap(void)
{
    if (damaged) { /* what is known twice is found when it is put away */
        hakmem_check();
        return;
    }
    showing = true;
    long broken = hakmem_check();
    showing = false;
    MUST(broken <= 0, "%ld rules are broken", broken);
    MUST(broken == 0 || (kernel_failed && errno == ENOMEM), "the walk failed");
}

static void act_whole(struct bytes *bytes)
{
    kernel_failed = false;
    errno = 0;
    switch (next_byte(bytes) % 10) {
    case 0:
        hakmem_malloc_trim(next_number(bytes, 3));
        break;
    case 1:
        hakmem_purge();
        break;
    case 2:
        check_heap();
        blocks_check_order();
        break;
    case 3:
        check_numbers();
        check_glibc_numbers();
        break;
    case 4:
        hakmem_malloc_stats();
        learned_print();
        break;
    case 5: {
        bool on = next_byte(bytes) % 2 != 0;
        hakmem_check_frees(on);
        MUST(hakmem_check_frees(on) == on, "check_frees is not %d", on);
        break;
    }
    case 6: /* as the scavenger's thread does */
        purge_by_time();
        break;
    case 7:
        if (next_byte(bytes) % 2 != 0)
            purge_by_time();
        break;
    case 8: {
        static FILE *nowhere;
        if (nowhere == NULL)
            nowhere = fopen("/dev/null", "w");
        MUST(hakmem_malloc_info((int)next_byte(bytes) % 2, nowhere) == 0 || bytes->at[-1] % 2 == 1,
             "malloc_info");
        break;
    }
    default: {
        size_t size = next_size(bytes);
        MUST(hakmem_good_size(size) >= size || size >= IMPOSSIBLE, "good_size(%zu)", size);
        break;
    }
    }
}

/* What hakmem.h says of each parameter, and glibc takes. */
static void act_parameter(struct bytes *bytes)
{
    int parameter = (int)next_byte(bytes) % 12 - 10;
    int value = (int)next_number(bytes, next_byte(bytes) % 5);
    if (value % 2 != 0 && value > 1)
        value = -value;
    int found = hakmem_mallopt(parameter, value);
    switch (parameter) {
    case -1:
        MUST(found == 1, "M_TRIM_THRESHOLD %d", value);
        break;
    case -2:
    case -4:
        MUST(found == (value >= 0), "%d: %d", parameter, value);
        break;
    case -3:
        MUST(found == (value >= 0 && value <= 32 << 20), "M_MMAP_THRESHOLD %d", value);
        break;
    case -5:
        MUST(found == ((value & 2) != 0), "M_CHECK_ACTION %d", value);
        break;
    case -6:
        MUST(found == (value == 0), "M_PERTURB %d", value);
        break;
    case -7:
    case -8:
        MUST(found == (value > 0), "%d: %d", parameter, value);
        break;
    case 1:
        MUST(found == (value >= 0 && value <= 160), "M_MXFAST %d", value);
        break;
    default:
        MUST(found == 0, "mallopt(%d) is known", parameter);
        break;
    }
}

static void act_again(struct bytes *bytes)
{
    (void)bytes;
    kernel_fails(0, 0);
}

/* ---- threads ---- */

static struct worker {
    pthread_t thread;
    sem_t begin, end;
    void (*act)(struct bytes *); /* null: the thread ends */
    struct bytes *bytes;
    bool lives;
} workers[THREADS];

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (;;) {
        sem_wait(&worker->begin);
        if (worker->act == NULL)
            return NULL;
        worker->act(worker->bytes);
        sem_post(&worker->end);
    }
}

void thread_does(unsigned thread, void (*act)(struct bytes *), struct bytes *bytes)
{
    struct worker *worker = &workers[thread];
    if (thread == 0) {
        act(bytes);
        return;
    }
    worker->act = act;
    worker->bytes = bytes;
    if (!worker->lives) {
        sem_init(&worker->begin, 0, 0);
        sem_init(&worker->end, 0, 0);
        MUST(pthread_create(&worker->thread, NULL, work, worker) == 0, "no thread");
        worker->lives = true;
    }
    sem_post(&worker->begin);
    sem_wait(&worker->end);
}

void thread_ends(unsigned thread)
{
    struct worker *worker = &workers[thread];
    if (thread == 0 || !worker->lives)
        return;
    worker->act = NULL;
    sem_post(&worker->begin);
    pthread_join(worker->thread, NULL);
    worker->lives = false;
}

/* ---- an input ---- */

static const struct {
    const char *name;
    void (*act)(struct bytes *);
} acts[] = {
    {"malloc", act_malloc},
    {"malloc", act_malloc},
    {"calloc", act_calloc},
    {"aligned", act_aligned},
    {"realloc", act_realloc},
    {"realloc", act_realloc},
    {"end", act_end},
    {"end", act_end},
    {"check", act_check_block},
    {"many", act_many},
    {"end many", act_end_many},
    {"whole", act_whole},
    {"the kernel fails", act_kernel},
    {"it works", act_again},
    {"parameter", act_parameter},
    {"move", act_move},
};
#define ACTS (sizeof acts / sizeof *acts)
#define KINDS 32 /* of acts, in a byte; the other two bits say whose */

void heap_act(struct bytes *bytes)
{
    unsigned byte = next_byte(bytes);
    unsigned kind = byte % KINDS, thread = byte / (256 / THREADS);
    if (kind == KINDS - 1) {
        thread_ends(thread);
        return;
    }
    kind %= ACTS;
    if (shows())
        fprintf(stderr, "thread %u: %s\n", thread, acts[kind].name);
    thread_does(thread, acts[kind].act, bytes);
}

void heap_start(void)
{
    /* One thread acts at a time, and what happens depends on the bytes alone. */
    option_default("HAKMEM_SCAVENGER", "off");
    option_default("HAKMEM_CHECK_SIZES", "on");
    option_default("HAKMEM_LEARN_LOG", "on");
    /* AddressSanitizer's memory lies in the first slots of hakmem's window, which finds that out
     * while it tries them: then blocks lie where the fast paths look for them. */
    static void *all[64];
    for (size_t i = 0; i < 64; i++)
        all[i] = hakmem_malloc(2 * MiB - 64 * KiB);
    for (size_t i = 0; i < 64; i++)
        hakmem_free(all[i]);
}

void heap_end(void)
{
    kernel_fails(0, 0);
    for (unsigned thread = 1; thread < THREADS; thread++)
        thread_ends(thread);
    blocks_check_order();
    for (size_t i = 0; i < BLOCKS; i++)
        block_end(&blocks[i], (unsigned)i);
    hakmem_check_frees(0);
    hakmem_option_set("keep_bytes", HAKMEM_AUTO);
    hakmem_malloc_trim(0);
    kernel_failed = false;
    damaged = false;
    check_heap();
    check_numbers();
}
