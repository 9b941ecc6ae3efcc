/* jemalloc's mallctl and malloc_stats_print, about hakmem's heap, by a table of names.
 *
 *   mallctl -> mallctlnametomib -> mallctlbymib -> control_get, control_set
 *
 * A name's first number, of those that mallctlnametomib stores, is its row of the table, and each
 * `*` is the number in its place. Figures are those of the last epoch, which a program begins by
 * writing to "epoch": they are kept in words that each thread may read and write, so two epochs
 * that begin at once may mix. No lock is held here, and none is needed around a fork. */
#include <errno.h>
#include <string.h>

#include "api/blocks.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "base/text.h"
#include "front/owners.h"
#include "hakmem/hakmem.h"
#include "heap/hardening.h"
#include "life/life.h"
#include "life/purge.h"
#include "life/settings.h"
#include "os/os.h"
#include "report/accounts.h"
#include "report/report.h"
#include "sheet/own.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- figures ---- */

/* Classes of slabs that hold many blocks; the others are blocks of whole slices. */
#define BINS_SMALL CLASS_SLICES_FIRST

/* Behind them one for all that is larger, so that the last is the largest block that there is. */
#define BIN_LARGEST CLASSES
#define BINS_ALL (CLASSES + 1)

struct bin_figures {
    size_t blocks, slabs;
};

struct figures { /* bytes, of threads a count */
    size_t allocated, active, metadata, resident, mapped, retained;
    size_t dirty, cached, small, large, threads;
    struct bin_figures bins[BINS_ALL];
};

static struct figures shown; /* atomic, each word by itself */
static size_t epoch;         /* atomic; 0: none yet */

static size_t bytes_of_class(unsigned cls)
{
    if (cls == BIN_LARGEST)
        return MOST_BYTES;
    return cls < BINS_SMALL ? class_usable(cls) : size_classes[cls].size;
}

static struct figures figures_of(const struct accounts *a)
{
    const struct hakmem_stats *s = &a->stats;
    size_t begun = s->program + s->thread_caches + s->transfer + s->free_in_slabs + s->rest;
    struct figures f = {
        .allocated = s->program,
        .active = round_up(begun - s->returned_in_slabs, os_page),
        .metadata = a->metadata_used,
        .mapped = begun,
        .retained = s->untouched,
        .dirty = s->retained + s->kept,
        .cached = s->thread_caches,
        .threads = s->threads,
        .bins[BIN_LARGEST] = {s->huge_blocks, s->huge_blocks},
    };
    f.resident = f.active + f.dirty + f.metadata;
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        const struct class_accounts *of = &a->classes[cls];
        f.bins[cls].blocks = excess(of->taken, of->cached + of->in_transfer);
        f.bins[cls].slabs = of->slabs;
        if (cls < BINS_SMALL)
            f.small += f.bins[cls].blocks * bytes_of_class(cls);
    }
    f.large = excess(f.allocated, f.small);
    return f;
}

static void epoch_begin(void)
{
    struct accounts accounts;
    heap_count(&accounts);
    struct figures now = figures_of(&accounts);
    words_copy_shared(&shown, &now, sizeof now / sizeof(size_t));
    add_relaxed(&epoch, 1);
}

static size_t figure_at(const void *of, size_t at)
{
    return load_relaxed((const size_t *)((const char *)of + at));
}

/* ---- the table ---- */

enum type { NOTHING, BOOL, SHORT, NUMBER, WORDS };

enum what {
    FIXED,
    OPTION,
    OPTION_SETTLED, /* may be set to what it is */
    FIGURE,
    FIGURE_PAGES,
    BIN_FIGURE,
    BIN_BLOCKS,
    BIN_SIZE,
    BIN_SLAB,
    PAGE_SIZE_NOW,
    ARENAS,
    PROFILE,
    SAMPLE,
    THREAD_ARENA,
    THREAD_CACHED,
    EPOCH,
    CREATE,
    CACHE_CREATE,
    CACHE_ORDER,
    DUMP,
    DECAY,
    DESTROY,
    PURGE,
    FLUSH,
};

enum words { WORDS_NONE, WORDS_PREFIX, WORDS_VERSION };

/* Of the table: without addresses, which the loader would write into it in each process. */
struct control {
    char name[40];
    uint8_t type, what;
    uint32_t at;
};

/* What mallctl knows, by name, in which `*` stands for a number. The types are those of jemalloc's
 * manual: NUMBER is a size_t or uint64_t, SHORT an unsigned or uint32_t; NOTHING is an order
 * without a value. `what` says where the value comes from: FIXED is `at` itself, OPTION an option
 * of hakmem's, FIGURE a figure as of the last epoch, BIN_FIGURE one of a size class. Everything
 * else answers ENOENT. docs/guide/migration.md has it for users.
 *
 * Arenas and caches that a program creates are numbers without meaning: bind and redis 8 end where
 * they get none. Not here must be what says how full a block's slab is (experimental.utilization):
 * valkey 8.1 then expects jemalloc's own size classes, and ends where it finds others. And no
 * counter of what a thread allocated: the fast path would have to count. */
/* clang-format off */
static const struct control controls[] SELDOM = {
    {"arena.*.decay", NOTHING, DECAY, 0},
    {"arena.*.destroy", NOTHING, DESTROY, 0},
    {"arena.*.initialized", BOOL, FIXED, true},
    {"arena.*.purge", NOTHING, PURGE, 0},
    {"arenas.bin.*.nregs", SHORT, BIN_BLOCKS, 0},
    {"arenas.bin.*.nshards", SHORT, FIXED, 1},
    {"arenas.bin.*.size", NUMBER, BIN_SIZE, 0},
    {"arenas.bin.*.slab_size", NUMBER, BIN_SLAB, 0},
    {"arenas.create", SHORT, CREATE, 0},
    {"arenas.lextent.*.size", NUMBER, BIN_SIZE, 0},
    {"arenas.narenas", SHORT, ARENAS, 0},
    {"arenas.nbins", SHORT, FIXED, BINS_SMALL},
    {"arenas.nhbins", SHORT, FIXED, CLASSES},
    {"arenas.nlextents", SHORT, FIXED, BINS_ALL - BINS_SMALL},
    {"arenas.page", NUMBER, PAGE_SIZE_NOW, 0},
    {"arenas.quantum", NUMBER, FIXED, 16},
    {"arenas.tcache_max", NUMBER, FIXED, CLASS_SLICES_MOST},
    {"background_thread", BOOL, OPTION_SETTLED, offsetof(struct policy, scavenger)},
    {"config.debug", BOOL, FIXED, HAKMEM_ASSERT},
    {"config.fill", BOOL, FIXED, false},
    {"config.lazy_lock", BOOL, FIXED, false},
    {"config.malloc_conf", WORDS, FIXED, WORDS_NONE},
    {"config.prof", BOOL, FIXED, true},
    {"config.stats", BOOL, FIXED, true},
    {"config.utrace", BOOL, FIXED, false},
    {"config.xmalloc", BOOL, FIXED, false},
    {"epoch", NUMBER, EPOCH, 0},
    {"opt.abort", BOOL, OPTION, offsetof(struct policy, abort_on_misuse)},
    {"opt.background_thread", BOOL, OPTION, offsetof(struct policy, scavenger)},
    {"opt.narenas", SHORT, FIXED, 1},
    {"opt.prof", BOOL, FIXED, true},
    {"opt.prof_active", BOOL, OPTION, offsetof(struct policy, profile)},
    {"opt.prof_prefix", WORDS, FIXED, WORDS_PREFIX},
    {"opt.tcache", BOOL, FIXED, true},
    {"opt.xmalloc", BOOL, FIXED, false},
    {"opt.zero", BOOL, FIXED, false},
    {"prof.active", BOOL, PROFILE, 0},
    {"prof.dump", WORDS, DUMP, 0},
    {"prof.lg_sample", NUMBER, SAMPLE, 0},
    {"stats.active", NUMBER, FIGURE, offsetof(struct figures, active)},
    {"stats.allocated", NUMBER, FIGURE, offsetof(struct figures, allocated)},
    {"stats.arenas.*.base", NUMBER, FIGURE, offsetof(struct figures, metadata)},
    {"stats.arenas.*.bins.*.curregs", NUMBER, BIN_FIGURE, offsetof(struct bin_figures, blocks)},
    {"stats.arenas.*.bins.*.curslabs", NUMBER, BIN_FIGURE, offsetof(struct bin_figures, slabs)},
    {"stats.arenas.*.large.allocated", NUMBER, FIGURE, offsetof(struct figures, large)},
    {"stats.arenas.*.lextents.*.curlextents", NUMBER, BIN_FIGURE, offsetof(struct bin_figures, blocks)},
    {"stats.arenas.*.mapped", NUMBER, FIGURE, offsetof(struct figures, mapped)},
    {"stats.arenas.*.nthreads", SHORT, FIGURE, offsetof(struct figures, threads)},
    {"stats.arenas.*.pactive", NUMBER, FIGURE_PAGES, offsetof(struct figures, active)},
    {"stats.arenas.*.pdirty", NUMBER, FIGURE_PAGES, offsetof(struct figures, dirty)},
    {"stats.arenas.*.pmuzzy", NUMBER, FIXED, 0},
    {"stats.arenas.*.resident", NUMBER, FIGURE, offsetof(struct figures, resident)},
    {"stats.arenas.*.retained", NUMBER, FIGURE, offsetof(struct figures, retained)},
    {"stats.arenas.*.small.allocated", NUMBER, FIGURE, offsetof(struct figures, small)},
    {"stats.arenas.*.tcache_bytes", NUMBER, FIGURE, offsetof(struct figures, cached)},
    {"stats.mapped", NUMBER, FIGURE, offsetof(struct figures, mapped)},
    {"stats.metadata", NUMBER, FIGURE, offsetof(struct figures, metadata)},
    {"stats.metadata_thp", NUMBER, FIXED, 0},
    {"stats.resident", NUMBER, FIGURE, offsetof(struct figures, resident)},
    {"stats.retained", NUMBER, FIGURE, offsetof(struct figures, retained)},
    {"tcache.create", SHORT, CACHE_CREATE, 0},
    {"tcache.destroy", SHORT, CACHE_ORDER, 0},
    {"tcache.flush", SHORT, CACHE_ORDER, 0},
    {"thread.arena", SHORT, THREAD_ARENA, 0},
    {"thread.idle", NOTHING, FLUSH, 0},
    {"thread.tcache.enabled", BOOL, THREAD_CACHED, 0},
    {"thread.tcache.flush", NOTHING, FLUSH, 0},
    {"version", WORDS, FIXED, WORDS_VERSION},
};
/* clang-format on */

#define CONTROLS (sizeof controls / sizeof *controls)

#define DIGITS(n) DIGITS_OF(n)
#define DIGITS_OF(n) #n

static const char *control_words(size_t which)
{
    return which == WORDS_VERSION ? "5.3.0-hakmem-" DIGITS(HAKMEM_VERSION_MAJOR) "." DIGITS(
                                        HAKMEM_VERSION_MINOR) "." DIGITS(HAKMEM_VERSION_PATCH)
           : which == WORDS_PREFIX ? "jeprof"
                                   : "";
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whether it is the name of a row; stores a number for each of its parts. */
static bool name_fits(const char *row, const char *name, size_t *parts)
{
    for (*parts = 0; *row != '\0'; row++) {
        if (*row != '*') {
            if (*row == '.')
                *++parts = 0;
            if (*row != *name++)
                return false;
            continue;
        }
        if (!is_digit(*name))
            return false;
        for (; is_digit(*name); name++)
            if (__builtin_mul_overflow(*parts, 10, parts) ||
                __builtin_add_overflow(*parts, (size_t)(*name - '0'), parts))
                return false;
    }
    return *name == '\0';
}

#define PARTS_MOST 6

static size_t parts_of(const char *row)
{
    size_t parts = 1;
    for (; *row != '\0'; row++)
        parts += *row == '.';
    return parts;
}

/* ---- arenas: there is one; those that a program creates are one more without memory ---- */

#define ARENAS_ALL 4096

static bool arena_created; /* atomic */

/* What a thread wrote last, to be read again. Of all threads together: it has no meaning, and
 * memory of each thread's own may be short where the library is loaded late. */
static struct {
    size_t arena;
    bool uncached;
} written; /* each is atomic */

static size_t arenas(void) { return 1 + (size_t)load_relaxed(&arena_created); }

/* The number after the last stood for all in older versions. */
static bool arena_is_ours(size_t n) { return n == 0 || n == ARENAS_ALL || n == arenas(); }

/* ---- values ---- */

/* What the numbers in the row's name are: of an arena, of a class. False where there is none. */
static bool numbers_fit(const struct control *c, const size_t *parts, size_t *arena, unsigned *cls)
{
    const char *row = c->name;
    size_t part = 0;
    bool of_arena = false, large = false;
    for (; *row != '\0'; row++) {
        part += *row == '.';
        large |= text_begins(row, "lextent", 7);
        if (*row != '*')
            continue;
        of_arena = text_begins(c->name, "arena.", 6) || (part == 2 && *c->name == 's');
        if (of_arena && parts[part] > arenas() && parts[part] != ARENAS_ALL)
            return false;
        if (of_arena)
            *arena = parts[part];
        else if (parts[part] >= (large ? BINS_ALL - BINS_SMALL : BINS_SMALL))
            return false;
        else
            *cls = (unsigned)parts[part] + (large ? BINS_SMALL : 0);
    }
    return true;
}

static size_t figure_of(const struct control *c, size_t arena, unsigned cls)
{
    if (load_relaxed(&epoch) == 0)
        epoch_begin();
    if (!arena_is_ours(arena))
        return 0;
    if (c->what == BIN_FIGURE)
        return figure_at(&shown.bins[cls], c->at);
    return figure_at(&shown, c->at) / (c->what == FIGURE_PAGES ? os_page : 1);
}

static size_t control_get(const struct control *c, size_t arena, unsigned cls)
{
    switch ((enum what)c->what) {
    case OPTION:
    case OPTION_SETTLED:
        return figure_at(&policy, c->at);
    case FIGURE:
    case FIGURE_PAGES:
    case BIN_FIGURE:
        return figure_of(c, arena, cls);
    case BIN_BLOCKS:
        return guard_places(cls);
    case BIN_SIZE:
        return bytes_of_class(cls);
    case BIN_SLAB:
        return size_classes[cls].slices * SLICE;
    case PAGE_SIZE_NOW:
        return os_page;
    case ARENAS:
        return arenas();
    case PROFILE:
        return load_relaxed(&policy.profile);
    case SAMPLE:
        return highest_bit(load_relaxed(&policy.profile_rate));
    case EPOCH:
        return load_relaxed(&epoch);
    case CREATE:
        store_relaxed(&arena_created, true);
        return 1;
    case THREAD_ARENA:
        return load_relaxed(&written.arena);
    case THREAD_CACHED:
        return !load_relaxed(&written.uncached);
    case FIXED:
        return c->type == WORDS ? (size_t)control_words(c->at) : c->at;
    default:
        return 0;
    }
}

/* To a file of this name, or to one that is named as jemalloc would name it. */
static int dump(const char *path)
{
    static size_t dumps; /* atomic */
    char name[64];
    if (path != NULL && text_length(path) >= PATH_OPTION_MOST)
        return EFAULT;
    size_t sequence = add_relaxed(&dumps, 1);
    text_of(name, sizeof name, "%s.%u.%zu.m%zu.heap", control_words(WORDS_PREFIX), os_process(),
            sequence, sequence);
    return profile_replace(path != NULL ? path : name) == 0 ? 0 : EFAULT;
}

static void flush_mine(void)
{
    struct cache *mine = thread_cache();
    if (mine != NULL)
        report_late(cache_empty(mine), NULL);
}

static int control_set(const struct control *c, size_t arena, size_t value)
{
    switch ((enum what)c->what) {
    case EPOCH: /* done before it was read */
    case CACHE_ORDER:
        return 0;
    case PROFILE:
        return option_change("profile", value, thread_cache()) == CHANGED ? 0 : EAGAIN;
    case DUMP:
        return dump((const char *)value);
    case FLUSH:
        flush_mine();
        return 0;
    case PURGE:
        if (arena_is_ours(arena))
            hakmem_purge();
        return 0;
    case DECAY:
        if (arena_is_ours(arena))
            purge_by_time();
        return 0;
    case DESTROY:
        return arena == 1 && arenas() > 1 ? 0 : EFAULT;
    case THREAD_ARENA:
        if (value >= arenas())
            return EFAULT;
        store_relaxed(&written.arena, value);
        return 0;
    case THREAD_CACHED:
        store_relaxed(&written.uncached, value == 0);
        if (value == 0)
            flush_mine();
        return 0;
    default: /* it is what it is */
        return value == control_get(c, arena, 0) ? 0 : EFAULT;
    }
}

static bool may_read(const struct control *c)
{
    return c->type != NOTHING && c->what != DUMP && c->what != CACHE_ORDER;
}

static bool may_write(const struct control *c)
{
    return c->what == OPTION_SETTLED || c->what == PROFILE || c->what == THREAD_ARENA ||
           c->what == THREAD_CACHED || c->what == EPOCH || c->what == DUMP ||
           c->what == CACHE_ORDER;
}

static size_t bytes_of(const struct control *c)
{
    return c->type == BOOL ? sizeof(bool) : c->type == SHORT ? sizeof(unsigned) : sizeof(size_t);
}

/* ---- calls ---- */

EXPORT int mallctlnametomib(const char *name, size_t *mib, size_t *length)
{
    size_t parts[PARTS_MOST] = {0};
    for (size_t i = 0; i < CONTROLS; i++) {
        size_t arena = 0;
        unsigned cls = 0;
        if (!name_fits(controls[i].name, name, parts))
            continue;
        if (!numbers_fit(&controls[i], parts, &arena, &cls))
            return ENOENT;
        parts[0] = i;
        *length = smaller(*length, parts_of(name));
        memcpy(mib, parts, *length * sizeof *mib);
        return 0;
    }
    return ENOENT;
}

EXPORT int mallctlbymib(const size_t *mib, size_t length, void *old, size_t *old_bytes,
                        const void *new, size_t new_bytes)
{
    size_t arena = 0, value = 0;
    unsigned cls = 0;
    if (length == 0 || mib[0] >= CONTROLS)
        return ENOENT;
    const struct control *c = &controls[mib[0]];
    if (length != parts_of(c->name) || !numbers_fit(c, mib, &arena, &cls))
        return ENOENT;
    bool reads = old != NULL && old_bytes != NULL, writes = new != NULL || new_bytes != 0;
    size_t bytes = bytes_of(c);
    if ((writes && !may_write(c)) || ((old != NULL || old_bytes != NULL) && !may_read(c)))
        return EPERM;
    if (writes && (new == NULL || new_bytes != bytes))
        return EINVAL;
    thread_cache(); /* the process's start: its options */
    if (c->what == EPOCH && writes)
        epoch_begin();
    if (may_read(c))
        value = control_get(c, arena, cls);
    if (reads) {
        size_t copied = smaller(bytes, *old_bytes);
        bool fits = copied == bytes && *old_bytes == bytes;
        memcpy(old, &value, copied);
        *old_bytes = copied;
        if (!fits)
            return EINVAL;
    }
    value = 0;
    if (writes)
        memcpy(&value, new, bytes);
    return writes || c->type == NOTHING || c->what == DUMP ? control_set(c, arena, value) : 0;
}

EXPORT int mallctl(const char *name, void *old, size_t *old_bytes, const void *new,
                   size_t new_bytes)
{
    size_t mib[PARTS_MOST], length = PARTS_MOST;
    int error = mallctlnametomib(name, mib, &length);
    return error != 0 ? error : mallctlbymib(mib, length, old, old_bytes, new, new_bytes);
}

/* ---- malloc_stats_print ---- */

/* The program's, where it has a variable of this name, as jemalloc's library does. */
extern void (*malloc_message)(void *, const char *) __attribute__((weak));

struct print {
    void (*write)(void *, const char *);
    void *to;
    struct text text; /* a part of it */
};

static void print_error(void *to, const char *words)
{
    (void)to;
    os_print_error(words, text_length(words));
}

static void print_part(struct print *print)
{
    print->write(print->to, print->text.start);
    text_init(&print->text, print->text.start, print->text.room);
}

static void print_figures(struct print *print, bool json)
{
    static const struct {
        char name[16];
        size_t at;
    } printed[] SELDOM = {
        {"allocated", offsetof(struct figures, allocated)},
        {"active", offsetof(struct figures, active)},
        {"metadata", offsetof(struct figures, metadata)},
        {"resident", offsetof(struct figures, resident)},
        {"mapped", offsetof(struct figures, mapped)},
        {"retained", offsetof(struct figures, retained)},
    };
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        size_t n = figure_at(&shown, printed[i].at);
        if (json)
            text_write(&print->text, "%s\"%s\":%zu", i == 0 ? "" : ",", printed[i].name, n);
        else
            text_write(&print->text, "%s%s: %zu", i == 0 ? "" : ", ",
                       i == 0 ? "Allocated" : printed[i].name, n);
    }
}

static void print_classes(struct print *print)
{
    text_add(&print->text, "Blocks in use, by size class:\n");
    for (unsigned cls = 0; cls < CLASSES; cls++) {
        size_t blocks = load_relaxed(&shown.bins[cls].blocks);
        if (blocks == 0)
            continue;
        text_write(&print->text, "  size %zu, blocks %zu, slabs %zu\n", bytes_of_class(cls), blocks,
                   load_relaxed(&shown.bins[cls].slabs));
        print_part(print);
    }
}

EXPORT void malloc_stats_print(void (*write)(void *, const char *), void *to, const char *options)
{
    size_t length = options != NULL ? text_length(options) : 0;
    bool json = text_find(options, length, 'J') != NULL;
    char line[512];
    struct print print = {write, to, {NULL, 0, 0}};
    if (write == NULL)
        print.write =
            &malloc_message != NULL && malloc_message != NULL ? malloc_message : print_error;
    epoch_begin();
    text_init(&print.text, line, sizeof line);
    const char *version = control_words(WORDS_VERSION);
    if (json)
        text_write(&print.text, "{\"jemalloc\":{\"version\":\"%s\",\"stats\":{", version);
    else
        text_write(&print.text, "___ Begin jemalloc statistics ___\nVersion: \"%s\"\n", version);
    print_figures(&print, json);
    text_add(&print.text, json ? "}}}\n" : "\n");
    print_part(&print);
    if (json)
        return;
    if (text_find(options, length, 'b') == NULL)
        print_classes(&print);
    text_add(&print.text, "--- End jemalloc statistics ---\n");
    print_part(&print);
}
