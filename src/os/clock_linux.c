/* The kernel's functions are a small shared object without relocations (the vDSO, vdso(7)). */
#include "os/clock.h"

#include <elf.h>
#include <time.h>

#include "base/atomic.h"
#include "os/calls.h"
#include "os/os.h"

#if defined(__x86_64__)
#define NAME "__vdso_clock_gettime"
#elif defined(__aarch64__)
#define NAME "__kernel_clock_gettime"
#else
#define NAME ""
#endif

typedef int clock_function(clockid_t clock, struct timespec *now);

static int call_clock(clockid_t clock, struct timespec *now)
{
    return (int)CALL(SYS_clock_gettime, clock, now);
}

static clock_function *clock_read = call_clock; /* constant after the start */

#if UNDER_SANITIZER
void clock_start(uintptr_t functions)
{
    (void)functions;
    clock_read = clock_gettime;
}
#else

/* Its tables, by where the dynamic section says that they are. */
struct tables {
    const Elf64_Sym *symbols;
    const char *names;
    const uint32_t *hash, *gnu_hash;
};

static struct tables tables_of(const char *image)
{
    struct tables tables = {NULL, NULL, NULL, NULL};
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
    const Elf64_Phdr *parts = (const Elf64_Phdr *)(image + head->e_phoff);
    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (parts[i].p_type != PT_DYNAMIC)
            continue;
        for (const Elf64_Dyn *d = (const Elf64_Dyn *)(image + parts[i].p_offset);
             d->d_tag != DT_NULL; d++) {
            const char *at = image + d->d_un.d_ptr;
            if (d->d_tag == DT_SYMTAB)
                tables.symbols = (const Elf64_Sym *)at;
            else if (d->d_tag == DT_STRTAB)
                tables.names = at;
            else if (d->d_tag == DT_HASH)
                tables.hash = (const uint32_t *)at;
            else if (d->d_tag == DT_GNU_HASH)
                tables.gnu_hash = (const uint32_t *)at;
        }
    }
    return tables;
}

/* Either table of hashes tells how many symbols there are: the newer one by its last chain, which
 * ends with an odd number. */
static uint32_t symbol_count(const struct tables *tables)
{
    if (tables->hash != NULL)
        return tables->hash[1];
    if (tables->gnu_hash == NULL)
        return 0;
    const uint32_t *head = tables->gnu_hash;
    const uint32_t buckets = head[0], first = head[1], filter_words = head[2];
    const uint32_t *bucket = head + 4 + 2 * (size_t)filter_words;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (last < first)
        return 0;
    while ((bucket[buckets + last - first] & 1) == 0)
        last++;
    return last + 1;
}

static bool same(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (*a == '\0')
            return true;
    return false;
}

void clock_start(uintptr_t functions)
{
    const char *image = (const char *)functions;
    if (image == NULL)
        return;
    const struct tables tables = tables_of(image);
    uint32_t count = tables.symbols != NULL && tables.names != NULL ? symbol_count(&tables) : 0;
    for (uint32_t i = 0; i < count; i++)
        if (tables.symbols[i].st_value != 0 && same(tables.names + tables.symbols[i].st_name, NAME))
            clock_read = (clock_function *)(functions + tables.symbols[i].st_value);
}
#endif

static struct timespec now_of(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_read(clock, &now);
    return now;
}

size_t os_milliseconds(void)
{
    struct timespec now = now_of(CLOCK_MONOTONIC_COARSE);
    return (size_t)now.tv_sec * 1000 + (size_t)now.tv_nsec / 1000000;
}

size_t os_nanoseconds(void)
{
    struct timespec now = now_of(CLOCK_MONOTONIC);
    return (size_t)now.tv_sec * 1000000000 + (size_t)now.tv_nsec;
}
