#include "model.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/policy.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "report/report.h"

#define LIVE_MOST (256 * MiB) /* bytes of live blocks */
#define BLOCK_MOST (24 * MiB)

struct block blocks[BLOCKS];
bool damaged;
unsigned reports;
size_t blocks_bytes;
static uint32_t last_number;

/* AddressSanitizer's own; what is allocated here is hakmem's, which it knows nothing of. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0:allocator_may_return_null=1"; }

void option_default(const char *variable, const char *value) { setenv(variable, value, 0); }

/* ---- the kernel, and what goes to standard error ---- */

static unsigned fails_after, fails_count;
bool kernel_failed, kernel_kept;

void kernel_fails(unsigned after, unsigned count)
{
    fails_after = after;
    fails_count = count;
}

bool showing;

bool shows(void) { return showing || getenv("FUZZ_SHOW") != NULL; }

static bool fails(const char *name)
{
    if (fails_count == 0)
        return false;
    if (fails_after > 0) {
        fails_after--;
        return false;
    }
    fails_count--;
    kernel_failed = true;
    kernel_kept = kernel_kept || strcmp(name, "os_unmap") == 0;
    if (shows())
        fprintf(stderr, "%s is refused\n", name);
    return true;
}

/* The linker gives calls of os_x to __wrap_os_x, and calls of __real_os_x to os_x (--wrap). */
#define WRAP(result, name, parameters, arguments, refused) \
    result __real_##name parameters;                       \
    result __wrap_##name parameters;                       \
    result __wrap_##name parameters { return fails(#name) ? (refused) : __real_##name arguments; }

WRAP(void *, os_map, (size_t length), (length), NULL)
WRAP(void *, os_map_aligned, (size_t length, size_t align), (length, align), NULL)
WRAP(void *, os_map_guarded, (size_t length), (length), NULL)
WRAP(void *, os_map_at, (uintptr_t address, size_t length, bool *occupied),
     (address, length, occupied), (*occupied = false, NULL))
WRAP(void *, os_map_block,
     (size_t length, size_t usable, size_t align, size_t *before, size_t *mapped),
     (length, usable, align, before, mapped), NULL)
WRAP(bool, os_forbid, (void *start, size_t length), (start, length), false)
WRAP(bool, os_guard_runs, (struct os_run * runs, size_t n), (runs, n), false)
WRAP(bool, os_unguard, (void *start, size_t length), (start, length), false)
WRAP(bool, os_let_write, (void *start, size_t length, bool may), (start, length, may), false)
WRAP(bool, os_unmap, (void *start, size_t length), (start, length), false)
WRAP(bool, os_purge, (void *start, size_t length), (start, length), false)
WRAP(bool, os_resize, (void *start, size_t from, size_t to, bool *pieces),
     (start, from, to, pieces), (*pieces = false))
WRAP(void *, os_move, (void *start, size_t from, size_t to), (start, from, to), NULL)

void __wrap_os_print_error(const char *words, size_t length);
void __wrap_os_print_error(const char *words, size_t length)
{
    MUST(length > 0 && words[length - 1] == '\n', "a line without its end: %.*s", (int)length,
         words);
    for (size_t i = 0; i < length; i++)
        MUST(words[i] == '\n' || (unsigned char)words[i] >= ' ', "byte %d on standard error",
             words[i]);
    if (shows())
        fwrite(words, 1, length, stderr);
}

/* A millisecond's rest for each double free that is looked into. */
void __wrap_os_let_pass(unsigned milliseconds);
void __wrap_os_let_pass(unsigned milliseconds) { (void)milliseconds; }

void __real_report_misuse(const struct wrong_call *call);
void __wrap_report_misuse(const struct wrong_call *call);
void __wrap_report_misuse(const struct wrong_call *call)
{
    reports++;
    __real_report_misuse(call);
}

void __real_report_late(struct finding found, const void *caller);
void __wrap_report_late(struct finding found, const void *caller);
void __wrap_report_late(struct finding found, const void *caller)
{
    reports += found.what != MISUSE_NONE;
    __real_report_late(found, caller);
}

/* ---- content ---- */

static unsigned char content(const struct block *block, size_t at)
{
    return (unsigned char)(block->number * 0x9e3779b1u >> 24 ^ at * 0x2b >> 3 ^ at);
}

/* Where it is looked at: all of a small block, of others both ends and a few bytes of each of some
 * pages. The next place after `at`. */
#define ENDS 48
#define PAGES_SEEN 8

static size_t place_after(size_t at, size_t size)
{
    at++;
    if (at < ENDS || at + ENDS >= size)
        return at;
    size_t step = round_up(size / PAGES_SEEN + 1, 4096);
    if (at % step >= 4)
        at = at / step * step + step;
    return at + ENDS >= size ? size - ENDS : at;
}

static void fill(const struct block *block)
{
    for (size_t at = 0; at < block->usable; at = place_after(at, block->usable))
        block->p[at] = content(block, at);
}

void block_check_content(const struct block *block, const unsigned char *p, size_t most)
{
    if (damaged)
        return;
    for (size_t at = 0; at < block->usable && at < most; at = place_after(at, block->usable))
        MUST(p[at] == content(block, at), "block %u at %p, %zu bytes: byte %zu is %u, expected %u",
             block->number, (const void *)p, block->usable, at, p[at], content(block, at));
}

void check_zero(const unsigned char *p, size_t size)
{
    size_t step = size <= 64 * KiB ? 1 : 509;
    for (size_t at = 0; at < size; at += step)
        MUST(p[at] == 0, "calloc of %zu bytes: byte %zu is %u", size, at, p[at]);
    MUST(size == 0 || p[size - 1] == 0, "calloc of %zu bytes: the last is %u", size, p[size - 1]);
}

void block_check(const struct block *block)
{
    if (block->p == NULL)
        return;
    size_t usable = hakmem_malloc_usable_size(block->p);
    MUST(damaged || usable == block->usable, "usable size %zu, expected %zu", usable,
         block->usable);
    block_check_content(block, block->p, SIZE_MAX);
}

/* ---- blocks ---- */

static int by_address(const void *a, const void *b)
{
    const struct block *const *x = a, *const *y = b;
    return ((*x)->p > (*y)->p) - ((*x)->p < (*y)->p);
}

void blocks_check_order(void)
{
    static const struct block *order[BLOCKS];
    size_t count = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        if (blocks[i].p != NULL)
            order[count++] = &blocks[i];
    qsort(order, count, sizeof *order, by_address);
    for (size_t i = 1; i < count && !damaged; i++)
        MUST(order[i - 1]->p + order[i - 1]->usable <= order[i]->p,
             "%p with %zu bytes and %p overlap", (void *)order[i - 1]->p, order[i - 1]->usable,
             (void *)order[i]->p);
}

bool block_fits(size_t size) { return size <= BLOCK_MOST && blocks_bytes + size <= LIVE_MOST; }

/* It alone, which is faster. */
void block_check_apart(const struct block *block)
{
    for (const struct block *other = blocks; other < blocks + BLOCKS && !damaged; other++)
        if (block->p != NULL && other->p != NULL && other != block)
            MUST(block->p + block->usable <= other->p || other->p + other->usable <= block->p,
                 "%p with %zu bytes lies in the one at %p with %zu", (void *)block->p,
                 block->usable, (void *)other->p, other->usable);
}

/* What malloc and its kin returned for `size`. errno was 0 before. */
void block_begin(struct block *block, unsigned char *p, size_t size, size_t align)
{
    if (p == NULL) {
        MUST(kernel_failed || size >= IMPOSSIBLE, "null for %zu bytes at a multiple of %zu", size,
             align);
        MUST(errno == ENOMEM, "errno %d", errno);
        return;
    }
    MUST(errno == 0, "errno is changed to %d", errno);
    MUST(size < IMPOSSIBLE, "a block of %zu bytes", size);
    size_t least = align < 16 ? 16 : align;
    MUST((uintptr_t)p % least == 0, "%p is no multiple of %zu", (void *)p, least);
    size_t usable = hakmem_malloc_usable_size(p);
    bool nothing = hardening.guards && size == 0 && usable == 0; /* which nobody can touch */
    MUST(nothing || (usable >= size && usable != 0), "%zu of %zu bytes", usable, size);
    bool guarded = policy.guards_a_second != 0 && usable == size + (size == 0);
    MUST(align != 0 || kernel_failed || guarded || nothing || usable == hakmem_good_size(size),
         "%zu of %zu bytes, not %zu", usable, size, hakmem_good_size(size));
    *block = (struct block){p, size, usable, align, ++last_number};
    blocks_bytes += usable;
    fill(block);
}

void block_end(struct block *block, unsigned how)
{
    if (block->p == NULL)
        return;
    unsigned before = reports;
    block_check(block);
    errno = 0;
    if (how % 3 == 1 && block->align == 0)
        hakmem_free_sized(block->p, block->asked);
    else if (how % 3 == 1)
        hakmem_free_aligned_sized(block->p, block->align, block->asked);
    else if (how % 3 == 2)
        MUST(hakmem_realloc(block->p, 0) == NULL || damaged, "realloc to 0 bytes");
    else if (how % 8 == 6)
        hakmem_defrag_free(block->p);
    else
        hakmem_free(block->p);
    MUST(errno == 0 || damaged, "errno is changed to %d", errno);
    MUST(reports == before || damaged, "the free of a block in use is reported");
    blocks_bytes -= block->usable;
    block->p = NULL;
}
