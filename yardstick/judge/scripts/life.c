// A process's life, and its resident memory at moments in which it makes no call.
//
//     life PATTERN ORDER MIB
//
// Loads MIB, frees all in an order, idles 3 s, has light traffic, loads and frees again. Prints a
// line for each moment: ORDER MOMENT KIB.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CREW = 8, MOST_BLOCKS = 1 << 21 };
enum step { LOAD, FREE, LIGHT, END };

struct member {
    pthread_t thread;
    uint64_t seed;
    void **blocks; // from mmap: they are no part of what is looked at
    size_t count;
};

struct pattern {
    const char *name;
    size_t least, most; // bytes of a block
    unsigned crew;
    void (*load)(struct member *, size_t bytes);
};

static const struct pattern *pattern;
static const char *order;
static size_t bytes_of_each;
static struct member crew[MOST_CREW];
static pthread_barrier_t begin, done;
static enum step step;

static size_t below(struct member *member, size_t limit)
{
    member->seed = member->seed * 6364136223846793005U + 1442695040888963407U;
    return (size_t)(member->seed >> 33) % limit;
}

static void keep(struct member *member, char *block, size_t size)
{
    memset(block, (int)member->count, size);
    member->blocks[member->count++] = block;
}

// Small sizes are the more frequent ones: each octave is as likely as the next.
static size_t some_size(struct member *member)
{
    size_t octaves = 0;
    while (pattern->least << (octaves + 1) <= pattern->most)
        octaves++;
    size_t from = pattern->least << below(member, octaves + 1);
    size_t size = from + below(member, from);
    return size < pattern->most ? size : pattern->most;
}

static void load_blocks(struct member *member, size_t bytes)
{
    for (size_t had = 0; had < bytes && member->count < MOST_BLOCKS;) {
        size_t size = some_size(member);
        keep(member, malloc(size), size);
        had += size;
    }
}

// Buffers that take turns to grow by a half.
static void load_growing(struct member *member, size_t bytes)
{
    enum { BUFFERS = 12 };
    for (size_t size = pattern->least, before = 0; size < bytes / BUFFERS; size += size / 2) {
        for (size_t i = 0; i < BUFFERS; i++) {
            char *block = realloc(before ? member->blocks[i] : NULL, size);
            memset(block + before, 1, size - before);
            member->blocks[i] = block;
        }
        before = size;
    }
    member->count = BUFFERS;
}

// Requests with a pool each: chunks that double.
static void load_pools(struct member *member, size_t bytes)
{
    for (size_t had = 0; had < bytes;) {
        size_t last = pattern->least << (1 + below(member, 7));
        for (size_t size = pattern->least; size <= last; size *= 2) {
            keep(member, malloc(size), size);
            had += size;
        }
    }
}

static const struct pattern patterns[] = {
    {"small", 20, 500, 1, load_blocks},        {"medium", 700, 14000, 1, load_blocks},
    {"large", 50000, 1500000, 1, load_blocks}, {"huge", 3000000, 11000000, 1, load_blocks},
    {"mixed", 16, 300000, 1, load_blocks},     {"growing", 3000, 0, 1, load_growing},
    {"pools", 1024, 0, 1, load_pools},         {"threads", 30, 9000, MOST_CREW, load_blocks},
    {"handover", 40, 3000, 2, load_blocks}, // the first allocates, the second frees
};

static void free_at(struct member *member, size_t at)
{
    free(member->blocks[at]);
    member->blocks[at] = NULL;
}

static void free_all(struct member *member)
{
    size_t count = member->count;
    if (!strcmp(order, "lifo")) {
        for (size_t at = count; at > 0; at--)
            free_at(member, at - 1);
    } else if (!strcmp(order, "fifo")) {
        for (size_t at = 0; at < count; at++)
            free_at(member, at);
    } else if (!strcmp(order, "random")) {
        for (size_t left = count; left > 0; left--) {
            size_t at = below(member, left);
            free(member->blocks[at]);
            member->blocks[at] = member->blocks[left - 1];
        }
    } else { // every other one, then the rest
        for (size_t at = 0; at < count; at += 2)
            free_at(member, at);
        for (size_t at = 1; at < count; at += 2)
            free_at(member, at);
    }
    member->count = 0;
}

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void light(struct member *member)
{
    for (int burst = 0; burst < 25; burst++) {
        char *some[40];
        for (size_t i = 0; i < 40; i++) {
            size_t size = 16 + below(member, 1400);
            memset(some[i] = malloc(size), 1, size);
        }
        char *page = malloc(20000);
        page[0] = page[10000] = 1;
        for (size_t i = 0; i < 40; i++)
            free(some[i]);
        free(page);
        sleep_ms(20);
    }
}

static void take(struct member *member)
{
    int hands_over = !strcmp(pattern->name, "handover");
    int second = member == &crew[1];
    if (step == LOAD && !(hands_over && second))
        pattern->load(member, bytes_of_each);
    if (step == FREE && hands_over && second)
        free_all(&crew[0]);
    if (step == FREE && !hands_over)
        free_all(member);
    if (step == LIGHT && (pattern->crew == 1 || second))
        light(member);
}

static void *member_main(void *argument)
{
    for (;;) {
        pthread_barrier_wait(&begin);
        if (step == END)
            return NULL;
        take(argument);
        pthread_barrier_wait(&done);
    }
}

static void all_take(enum step next)
{
    step = next;
    if (pattern->crew == 1) {
        take(&crew[0]);
        return;
    }
    pthread_barrier_wait(&begin);
    if (step != END)
        pthread_barrier_wait(&done);
}

static void moment(const char *name)
{
    static char text[8192];
    int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    ssize_t size = read(file, text, sizeof(text) - 1);
    close(file);
    text[size > 0 ? size : 0] = 0;
    const char *resident = strstr(text, "Rss:");
    char line[128];
    int length =
        snprintf(line, sizeof(line), "%s %s %ld\n", order, name, resident ? atol(resident + 4) : 0);
    if (write(1, line, (size_t)length) != length)
        _exit(1);
}

static void start(size_t mib)
{
    pthread_barrier_init(&begin, NULL, pattern->crew + 1);
    pthread_barrier_init(&done, NULL, pattern->crew + 1);
    int loading = !strcmp(pattern->name, "handover") ? 1 : (int)pattern->crew;
    bytes_of_each = (mib << 20) / (size_t)loading;
    for (unsigned i = 0; i < pattern->crew; i++) {
        crew[i].seed = i * 977 + 31;
        crew[i].blocks = mmap(NULL, MOST_BLOCKS * sizeof(void *), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pattern->crew > 1)
            pthread_create(&crew[i].thread, NULL, member_main, &crew[i]);
    }
}

int main(int count, char **words)
{
    if (count != 4)
        return 0; // the loader has bound all
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
        if (!strcmp(patterns[i].name, words[1]))
            pattern = &patterns[i];
    if (!pattern)
        return 2;
    order = words[2];
    start((size_t)atol(words[3]));
    all_take(LOAD);
    moment("loaded");
    all_take(FREE);
    moment("freed");
    sleep_ms(3000);
    moment("idle");
    all_take(LIGHT);
    moment("light");
    all_take(LOAD);
    moment("reloaded");
    all_take(FREE);
    sleep_ms(1000);
    moment("ended");
    all_take(END);
    return 0;
}
