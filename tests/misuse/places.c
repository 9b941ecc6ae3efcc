/* Writes right before a block and right after it, in a hardened heap: for sizes of all classes, at
 * the first place of a slab, the second, one in the middle and the last, each in a child. All must
 * end by a report that names the write, or by SIGSEGV in the write itself.
 *
 *   misuse_places [--locked]
 *
 * --locked: after mlockall, where there are no guard pages. */
#include "wrote.h"

#include <sys/mman.h>

enum { SLAB = 65536, MOST = 32768, BLOCKS_MOST = 20000, PLACES = 4 };

static const char *const place_names[PLACES] = {"first", "second", "middle", "last"};
static char *blocks[BLOCKS_MOST];
static int failed, cases, faults;

struct access {
    size_t size, length;
    bool before;
    char *p;
    size_t count; /* of all blocks */
};

static unsigned place_of(const char *p) { return (unsigned)((uintptr_t)p % SLAB); }

/* The child writes, tells so, and frees the block and all others. */
static void go_wrong(void *access)
{
    const struct access *a = access;
    volatile char *from = a->before ? a->p - 1 : a->p + malloc_usable_size(a->p);
    for (size_t i = 0; i < a->length; i++, from += a->before ? -1 : 1)
        *from ^= 0x5a;
    tell_that_it_wrote();
    free(a->p);
    for (size_t i = 0; i < a->count; i++)
        if (blocks[i] != a->p)
            free(blocks[i]);
    exit(0);
}

static void try(struct access a, const char *place)
{
    struct child_end end = child_end(go_wrong, &a);
    cases++;
    faults += end.said[0] != '!';
    if (is_found(end, a.before ? "something wrote before this block, or beyond"
                               : "something wrote beyond the end of this block, or before"))
        return;
    failed++;
    printf("%zu bytes, %s place, %zu bytes %s: status %#x, %s\n", a.size, place, a.length,
           a.before ? "before" : "after", (unsigned)end.status, end.said);
}

/* Until a slab is full, and so each of its places was handed out. */
static size_t allocate(size_t size)
{
    size_t count = 0;
    for (size_t more = 0; count < BLOCKS_MOST && more < (size_t)SLAB / size + 80; count++, more++)
        blocks[count] = malloc(size);
    for (bool first = false; count < BLOCKS_MOST && !first;) {
        for (size_t i = 0; i < count && !first; i++)
            first = place_of(blocks[i]) == 0;
        if (!first)
            blocks[count++] = malloc(size);
    }
    return count;
}

/* A block at each place that there is. */
static void find_places(size_t count, char *found[PLACES])
{
    unsigned least = SLAB, most = 0;
    char *first = NULL, *second = NULL, *last = NULL, *middle = NULL;
    for (size_t i = 0; i < count; i++) {
        unsigned place = place_of(blocks[i]);
        if (place == 0)
            first = blocks[i];
        else if (place < least) {
            least = place;
            second = blocks[i];
        }
        if (place > most) {
            most = place;
            last = blocks[i];
        }
    }
    for (size_t i = 0; i < count; i++)
        if (abs((int)place_of(blocks[i]) - SLAB / 2) <
            (middle == NULL ? SLAB : abs((int)place_of(middle) - SLAB / 2)))
            middle = blocks[i];
    char *all[PLACES] = {first, second, middle, last};
    memcpy(found, all, sizeof all);
}

static void try_size(size_t size)
{
    static const size_t lengths[] = {1, 8, 16, 64};
    char *found[PLACES];
    size_t count = allocate(size);
    find_places(count, found);
    if (found[0] == NULL)
        exit(2);
    for (int place = 0; place < PLACES; place++)
        for (size_t i = 0; i < 8 && found[place] != NULL; i++)
            try((struct access){size, lengths[i / 2], i % 2 == 0, found[place], count},
                place_names[place]);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--locked") == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        perror("mlockall");
        return 77;
    }
    for (size_t usable = 8; usable < MOST;) {
        char *p = malloc(usable);
        size_t full = malloc_usable_size(p);
        free(p);
        if (full >= MOST)
            break;
        try_size(full);
        try_size(usable); /* the least of its class */
        usable = full + 1;
    }
    printf("%d writes, %d ended at once, %d were not found\n", cases, faults, failed);
    return failed != 0;
}
