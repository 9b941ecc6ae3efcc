/* Limits of containers, in a tree of files that stands for the kernel's. Each case is a process.
 * The tree is made in the current folder.
 *
 *   limits_tree VERSION      1 or 2 */
#include "../api/check.h"
#include "os_fake.h"

#include <hakmem/hakmem.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[64];
static bool first; /* version 1 */

/* ---- the tree ---- */

static void put(const char *path, const char *content)
{
    static char full[8192];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *c = full + 1; (c = strchr(c, '/')) != NULL; c++) {
        *c = 0;
        mkdir(full, 0755);
        *c = '/';
    }
    int file = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!CHECK(file >= 0, "%s: %s", full, error_name(errno)))
        exit(1);
    ssize_t written = write(file, content, strlen(content));
    close(file);
    CHECK(written == (ssize_t)strlen(content), "%s: %s", full, error_name(errno));
}

static void put_in_group(const char *group, const char *name, const char *content)
{
    char path[512];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/%s", first ? "/memory" : "", group, name);
    put(path, content);
}

static void put_number(const char *group, const char *name, size_t number)
{
    char content[32];
    snprintf(content, sizeof content, "%zu\n", number);
    put_in_group(group, name, content);
}

static void limit(const char *group, size_t bytes)
{
    put_number(group, first ? "memory.limit_in_bytes" : "memory.max", bytes);
}

static void usage(const char *group, size_t bytes)
{
    put_number(group, first ? "memory.usage_in_bytes" : "memory.current", bytes);
}

static void idle_cache(const char *group, size_t bytes)
{
    char content[128];
    snprintf(content, sizeof content, "cache 5\n%s %zu\nlast 7\n",
             first ? "total_inactive_file" : "inactive_file", bytes);
    put_in_group(group, "memory.stat", content);
}

static void process_is_in(const char *group)
{
    char content[256];
    snprintf(content, sizeof content, "7:cpu:/other\n%s:%s\n", first ? "4:memory" : "0:", group);
    put("/proc/self/cgroup", content);
}

/* ---- the work ---- */

static struct hakmem_stats stats_now(void)
{
    struct hakmem_stats stats;
    hakmem_stats(&stats, sizeof stats);
    return stats;
}

static size_t kept(void)
{
    struct hakmem_stats stats = stats_now();
    return stats.retained + stats.kept + stats.thread_caches;
}

static void come_and_go(size_t n, size_t bytes)
{
    static void *blocks[1 << 16];
    size_t count = bytes / n;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = NEED("a block", do_malloc(n));
        memset(blocks[i], 1, n);
    }
    for (size_t i = 0; i < count; i++)
        do_free(blocks[i]);
}

/* The most that is kept after blocks of all kinds. */
static size_t kept_after_work(void)
{
    static const size_t sizes[] = {4 * MiB, 4000, 1 * MiB, 100000};
    size_t most = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        come_and_go(sizes[i], 64 * MiB);
        size_t now = kept();
        most = now > most ? now : most;
    }
    return most;
}

/* Until the files are read again. */
static void pass_time(void)
{
    struct timespec time = {0, 250000000};
    nanosleep(&time, NULL);
}

static void keeps_at_most(size_t bytes)
{
    size_t found = kept_after_work();
    CHECK(found <= bytes, "kept: expected at most %zu, found %zu", bytes, found);
}

static void keeps_much(void)
{
    come_and_go(4 * MiB, 64 * MiB);
    CHECK(kept() > 32 * MiB, "kept: expected more than %zu, found %zu", 32 * MiB, kept());
}

static void knows(size_t limit)
{
    CHECK_SIZE("container_limit", stats_now().container_limit, limit);
}

/* Of each kind a part, and what the calls after the last ones would give back. */
#define PART(limit) (2 * (limit) / 16 + 4 * MiB)

static void own_limit(void)
{
    process_is_in("/a/b");
    limit("/a/b", 160 * MiB);
    keeps_at_most(PART(160 * MiB));
    knows(160 * MiB);
}

static void limit_of_a_parent(void)
{
    process_is_in("/a b/gr\xc3\xb6\xc3\x9f"
                  "e/c");
    limit("/a b/gr\xc3\xb6\xc3\x9f"
          "e/c",
          4096 * MiB);
    limit("/a b/gr\xc3\xb6\xc3\x9f"
          "e",
          1024 * MiB);
    limit("/a b", 128 * MiB);
    keeps_at_most(PART(128 * MiB));
    knows(128 * MiB);
}

/* As in a container that sees only its own group, at the root, under the host's name for it. */
static void limit_of_the_root(void)
{
    process_is_in("/not/there");
    limit("", 128 * MiB);
    keeps_at_most(PART(128 * MiB));
    process_is_in("/../../elsewhere");
    pass_time();
    keeps_at_most(PART(128 * MiB));
    knows(128 * MiB);
}

static void the_lower_of_two(void)
{
    process_is_in("/a");
    limit("/a", 4096 * MiB);
    if (first)
        limit("", 96 * MiB);
    else
        put_number("/a", "memory.high", 96 * MiB);
    keeps_at_most(PART(96 * MiB));
    knows(96 * MiB);
}

static void no_limit(void)
{
    static const char *const contents[] = {"max\n",
                                           "",
                                           "\n",
                                           "-1\n",
                                           "9223372036854771712\n",
                                           "lots\n",
                                           "99999999999999999999999999999\n"};
    put("/proc/self/cgroup", "");
    keeps_much();
    process_is_in("/a");
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        put_in_group("/a", first ? "memory.limit_in_bytes" : "memory.max", contents[i]);
        pass_time();
        keeps_much();
        knows(0);
    }
}

static void nothing_there(void)
{
    keeps_much();
    knows(0);
    CHECK_SIZE("breaches", (size_t)hakmem_check(), 0);
}

static void a_limit_that_changes(void)
{
    process_is_in("/a");
    limit("/a", 4096 * MiB);
    keeps_much();
    limit("/a", 128 * MiB);
    pass_time();
    keeps_at_most(PART(128 * MiB));
    limit("/a", 8192 * MiB);
    pass_time();
    come_and_go(4 * MiB, 32 * MiB);
    keeps_much();
    knows(8192 * MiB);
}

static void pressure(void)
{
    process_is_in("/a/b");
    limit("/a/b", 4096 * MiB);
    limit("/a", 2048 * MiB);
    usage("/a", 1700 * MiB);
    keeps_much();
    usage("/a", 1900 * MiB); /* above 7/8 */
    idle_cache("/a", 0);
    pass_time();
    keeps_at_most(8 * MiB);
    idle_cache("/a", 500 * MiB); /* page cache that the kernel would drop first */
    pass_time();
    come_and_go(4 * MiB, 32 * MiB);
    keeps_much();
}

/* A heap that comes near the limit keeps nothing, though other sizes are needed. */
static void near_the_limit(void)
{
    process_is_in("/a");
    limit("/a", 160 * MiB);
    come_and_go(4 * MiB, 32 * MiB); /* the limit is known */
    static char *blocks[40];
    for (unsigned i = 0; i < 38; i++)
        memset(blocks[i] = NEED("a block", do_malloc(4 * MiB)), 1, 4 * MiB);
    for (unsigned i = 0; i < 2; i++)
        do_free(blocks[i]);
    struct hakmem_stats now = stats_now();
    CHECK(now.kept <= 2 * MiB, "kept: expected at most %zu, found %zu", 2 * MiB, now.kept);
}

static void turned_off(void)
{
    process_is_in("/a");
    limit("/a", 64 * MiB);
    keeps_much();
    knows(0);
}

static struct {
    const char *name, *option;
    void (*test)(void);
} now;

static void test_now(void)
{
    snprintf(root, sizeof root, "%s-%d", now.name, (int)getpid());
    os_fake.root = root;
    setenv("HAKMEM_CONTAINER_LIMITS", now.option, 1);
    setenv("HAKMEM_KEEP_BYTES", "1G", 1);
    now.test();
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK(system(command) == 0, "%s failed", command);
}

/* Free memory is kept, all of it, but for what the limits forbid. */
static void in_a_new_process(const char *name, void (*test)(void), const char *option)
{
    now.name = check_test = name;
    now.test = test;
    now.option = option;
    in_child(test_now);
}

#define TEST_WITH_LIMITS(test) in_a_new_process(#test, test, "on")

int main(int argc, char **argv)
{
    first = argc == 2 && strcmp(argv[1], "1") == 0;
    TEST_WITH_LIMITS(own_limit);
    TEST_WITH_LIMITS(limit_of_a_parent);
    TEST_WITH_LIMITS(limit_of_the_root);
    TEST_WITH_LIMITS(the_lower_of_two);
    TEST_WITH_LIMITS(no_limit);
    TEST_WITH_LIMITS(nothing_there);
    TEST_WITH_LIMITS(a_limit_that_changes);
    TEST_WITH_LIMITS(pressure);
    TEST_WITH_LIMITS(near_the_limit);
    in_a_new_process("turned_off", turned_off, "off");
    return check_end();
}
