/* Kinds of misuse, one for each run: `kinds NAME`, and `kinds --list` for all of them.
 *
 * Prints "before", "after" and "end OUTCOME", and exits with 0: what happened if nothing ended the
 * program by a signal. Prints "twins" and "chosen" as soon as it is so. matrix.py runs all kinds on
 * several allocators. */
#include "kinds.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define FAILED 78
#define MOST_AROUND 5
#define EDGE (2 * (size_t)PAGE)

static const char *const outcomes[] = {
    "unnoticed: the program went on as if nothing had happened",
    "damaged: so it did, and another block's content has changed",
    "old: it read what it had written to the block before",
    "another's: it read what it had written to another block",
    "zeros: it read zeros",
    "other: it read other bytes: a pattern, or data of the allocator",
    "size: the call answered for a block that does not exist",
    "null: the call was refused",
    "twins: malloc returned memory that another block has",
    "chosen: malloc returned an address that the program had written to a free block",
    "apart: malloc returned separate blocks",
    "reused: malloc returned the address at once that was freed last",
    "later: malloc returned it after other addresses",
    "in-order: new blocks have addresses in their order",
    "scattered: they do not",
    "absent: the allocator lacks the function, or the situation can't be made",
};

static const struct size {
    const char *name;
    size_t bytes;
    unsigned around, churn;
} sizes[] = {
    {"small", 40, MOST_AROUND, 50000},
    {"mid", 20000, MOST_AROUND, 3000},
    {"large", 1000000, 3, 100},
    {"huge", 16000000, 1, 12},
};

static const struct kind *const tables[] = {kinds_of_writes, kinds_of_reads, kinds_of_frees,
                                            kinds_of_calls};

long number;
size_t bytes, edge;
unsigned before, churn;

/* ---- what kinds share ---- */

void say(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(FAILED);
}

void say_before(void) { say("before\n"); }
void say_after(void) { say("after\n"); }

static void fill(char *p, int content)
{
    memset(p, content, edge);
    memset(p + bytes - edge, content, edge);
}

static char *got[GOT_MOST];
static unsigned gets;

char *get(int content)
{
    char *p = do_malloc(bytes);
    if (p == NULL)
        _exit(FAILED);
    fill(p, content);
    got[gets++ % GOT_MOST] = p;
    return p;
}

bool was_got(const char *p)
{
    for (unsigned i = 0; i < GOT_MOST; i++)
        if (got[i] == p)
            return true;
    return false;
}

static char *around[2 * MOST_AROUND + 1];

/* Takes one out, for the wrong use. */
static char *take_out(unsigned at)
{
    char *p = around[at];
    around[at] = NULL;
    fill(p, OWN);
    return p;
}

static void get_row(void)
{
    for (unsigned i = 0; i < 2 * before + 1; i++)
        around[i] = get(OTHERS);
}

char *get_among(void)
{
    get_row();
    return take_out(before);
}

/* Of all pairs that which is nearest. */
static char *get_of_pair(bool upper)
{
    unsigned low = 0, high = 0;
    size_t least = SIZE_MAX;
    get_row();
    for (unsigned i = 0; i < 2 * before + 1; i++)
        for (unsigned j = 0; j < 2 * before + 1; j++)
            if (around[i] < around[j] && (size_t)(around[j] - around[i]) < least) {
                least = (size_t)(around[j] - around[i]);
                low = i;
                high = j;
            }
    return take_out(upper ? high : low);
}

char *get_below(void) { return get_of_pair(false); }
char *get_above(void) { return get_of_pair(true); }

static bool has(const char *p, size_t count, char content)
{
    while (count > 0 && p[count - 1] == content)
        count--;
    return count == 0;
}

const char *neighbours(void)
{
    for (unsigned i = 0; i < 2 * before + 1; i++)
        if (around[i] != NULL &&
            (!has(around[i], edge, OTHERS) || !has(around[i] + bytes - edge, edge, OTHERS)))
            return "damaged";
    return "unnoticed";
}

void free_neighbours(void)
{
    for (unsigned i = 0; i < 2 * before + 1; i++)
        do_free(around[i]);
    memset(around, 0, sizeof around);
}

void go_on(void)
{
    char *held[8] = {NULL};
    for (unsigned i = 0; i < churn; i++) {
        char **one = &held[i % 8];
        do_free(*one);
        *one = do_malloc(bytes);
        if (*one == NULL)
            _exit(FAILED);
        memset(*one, 1, 16);
    }
    for (unsigned i = 0; i < 8; i++)
        do_free(held[i]);
}

const char *finish(void *block)
{
    const char *found = neighbours();
    do_free(block);
    free_neighbours();
    go_on();
    return found;
}

void change(char *from, size_t count)
{
    for (volatile char *p = from; count > 0; count--, p++)
        *p = (char)(*p ^ 0xa5);
}

const char *look_at(const char *from, size_t count)
{
    size_t own = 0, others = 0, rest = 0, enough = count < 8 ? count : 8;
    for (const volatile char *p = from; count > 0; count--, p++) {
        char c = *p;
        own += c == OWN;
        others += c == OTHERS;
        rest += c != 0;
    }
    if (own >= enough)
        return "old";
    if (others >= enough)
        return "another's";
    return rest == 0 ? "zeros" : "other";
}

static bool any_overlap(char *const *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (blocks[i] < blocks[j] + bytes && blocks[j] < blocks[i] + bytes)
                return true;
    return false;
}

const char *take_many(char *owned, const char *wished)
{
    char *blocks[64] = {owned};
    size_t first = owned != NULL, count = bytes > 1000000 ? 8 : 64;
    const char *found = "apart";
    for (size_t i = first; i < count; i++) {
        blocks[i] = do_malloc(bytes);
        if (blocks[i] == NULL)
            _exit(FAILED);
        if (blocks[i] == wished)
            found = "chosen";
    }
    if (any_overlap(blocks, count))
        found = "twins";
    if (strcmp(found, "apart") != 0) {
        say(found);
        say("\n");
    }
    for (size_t i = 0; i < count; i++)
        if (blocks[i] != wished)
            do_free(blocks[i]);
    finish(NULL);
    return found;
}

void *function(const char *name) { return dlsym(RTLD_DEFAULT, name); }

/* ---- which kinds there are ---- */

static void use(const struct size *size, long of_the_kind)
{
    number = of_the_kind;
    bytes = size->bytes;
    edge = bytes / 2 < EDGE ? bytes / 2 : EDGE;
    before = size->around;
    churn = size->churn;
}

/* Whether it is the kind called so; prints it where no name is given. */
static bool is_called(const struct kind *kind, const char *suffix, const char *name)
{
    char own[100];
    snprintf(own, sizeof own, "%s%s%s", kind->name, *suffix != '\0' ? "_" : "", suffix);
    if (name == NULL)
        printf("%s\t%s\t%s\n", own, kind->right, kind->what);
    return name != NULL && strcmp(own, name) == 0;
}

static const struct kind *find_or_list(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct kind *kind = tables[t]; kind->name != NULL; kind++) {
            use(&sizes[0], kind->number);
            if (kind->sizes == ONE && is_called(kind, "", name))
                return kind;
            for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                use(&sizes[s], kind->number);
                if ((kind->sizes & 1u << s) != 0 && is_called(kind, sizes[s].name, name))
                    return kind;
            }
        }
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fputs("usage: kinds NAME | --list | --outcomes\n", stderr);
        return 2;
    }
    if (strcmp(arguments[1], "--outcomes") == 0) {
        for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
            puts(outcomes[i]);
        return 0;
    }
    if (strcmp(arguments[1], "--list") == 0) {
        find_or_list(NULL);
        return 0;
    }
    setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
    const struct kind *kind = find_or_list(arguments[1]);
    if (kind == NULL) {
        fprintf(stderr, "no kind %s; see --list\n", arguments[1]);
        return 2;
    }
    const char *outcome = kind->run();
    say("end ");
    say(outcome);
    say("\n");
    return 0;
}
