/* What hakmem reads about control groups, and what follows from a limit of memory. */
#include "life/limits.h"

#include <string.h>

#include "back/map.h"
#include "back/use.h"
#include "learn/keep.h"
#include "unit.h"

static struct cgroup group;

static bool find(const char *text) { return cgroup_find(text, strlen(text), &group); }

static void expect_group(const char *text, bool first, const char *path)
{
    EXPECT(find(text));
    EXPECT_EQUAL(group.first, first);
    EXPECT_EQUAL(group.length, strlen(path));
    EXPECT(memcmp(group.path, path, group.length) == 0);
}

static void the_group_that_limits_memory_is_found(void)
{
    expect_group("0::/system.slice/x.service\n", false, "/system.slice/x.service");
    expect_group("0::/\n", false, "");
    expect_group("9:cpu,cpuacct:/a\n4:memory:/b/c\n0::/d\n", true, "/b/c");
    expect_group("0::/d\n4:memory:/b/c\n", true, "/b/c");
    expect_group("4:cpu,memory:/b\n", true, "/b");
    expect_group("4:memory,cpu:/b\n", true, "/b");
    expect_group("12:x,memory,y:/b\n1:memory:/later\n", true, "/b");
    expect_group("5:memoryx:/a\n6:xmemory:/b\n7:name=memory:/c\n0::/d\n", false, "/d");
    expect_group("3:cpu:/a\n0::/d\n0::/e\n", false, "/d");
}

static void paths_may_hold_anything(void)
{
    expect_group("0::/a b/c:d/\"e\"\n", false, "/a b/c:d/\"e\"");
    expect_group("0::/gr\xc3\xb6\xc3\x9f"
                 "e/\xe7\xbe\xa4\n",
                 false,
                 "/gr\xc3\xb6\xc3\x9f"
                 "e/\xe7\xbe\xa4");
    expect_group("0::/..a/b\n", false, "/..a/b");
    expect_group("0::/a/..\n", false, "/a/..");
    /* Outside of what the namespace shows. */
    expect_group("0::/..\n", false, "");
    expect_group("0::/../../b\n", false, "");
    expect_group("4:memory:/../b\n", true, "");
}

static void what_makes_no_sense_is_no_group(void)
{
    static const char *const texts[] = {
        "",
        "\n",
        ":",
        "::",
        "0:",
        "0::",
        "0::\n",
        "0:\n",
        "0\n",
        "0::x\n",
        "0::/cut",
        "4:cpu:/a\n",
        "4:memory\n/a\n",
        "::\n::\n",
        "max\n",
        "4:memory:a\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        EXPECT(!find(texts[i]));
    /* Whatever the bytes are, what is found lies in the text. */
    static char text[300];
    static const char some[] = "0:/\nmemory,:\n:/.";
    for (unsigned round = 0; round < 200000; round++) {
        size_t length = next_random() % sizeof text;
        for (size_t i = 0; i < length; i++)
            text[i] = round % 2 ? some[next_random() % (sizeof some - 1)] : (char)next_random();
        if (!cgroup_find(text, length, &group))
            continue;
        EXPECT(group.path >= text && group.path + group.length < text + length);
        EXPECT(group.length == 0 || group.path[0] == '/');
        size_t levels = 0;
        while (cgroup_parent(&group))
            EXPECT(++levels <= length);
        EXPECT_EQUAL(group.length, 0);
    }
}

static void parents_follow_up_to_the_root(void)
{
    expect_group("0::/a b/cc/d\n", false, "/a b/cc/d");
    EXPECT(cgroup_parent(&group));
    EXPECT_EQUAL(group.length, strlen("/a b/cc"));
    EXPECT(cgroup_parent(&group));
    EXPECT_EQUAL(group.length, strlen("/a b"));
    EXPECT(cgroup_parent(&group));
    EXPECT_EQUAL(group.length, 0);
    EXPECT(!cgroup_parent(&group));
}

static size_t number(const char *text) { return cgroup_number(text, strlen(text), NO_LIMIT); }

static void numbers_are_whole(void)
{
    EXPECT_EQUAL(number("0\n"), 0);
    EXPECT_EQUAL(number("150000000\n"), 150000000);
    EXPECT_EQUAL(number("150000000"), 150000000);
    EXPECT_EQUAL(number("5 max\n"), 5);
    EXPECT_EQUAL(number("18446744073709551614\n"), SIZE_MAX - 1);
    static const char *const none[] = {
        "",
        "\n",
        "max\n",
        "-1\n",
        " 5\n",
        "5k\n",
        "5.0\n",
        "0x10\n",
        "99999999999999999999\n",
        "18446744073709551616\n",
        "\xff",
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        EXPECT_EQUAL(number(none[i]), NO_LIMIT);
    EXPECT_EQUAL(cgroup_number("x", 1, 7), 7);
    EXPECT_EQUAL(cgroup_number("123", 2, 7), 12);
}

static size_t line(const char *text) { return cgroup_line(text, strlen(text), "inactive_file"); }

static void a_line_is_found_by_its_whole_name(void)
{
    EXPECT_EQUAL(line("anon 5\ninactive_file 77\nactive_file 8\n"), 77);
    EXPECT_EQUAL(line("inactive_file 77"), 77);
    EXPECT_EQUAL(line("total_inactive_file 1\ninactive_file 2\n"), 2);
    EXPECT_EQUAL(line("inactive_files 1\ninactive_file\ninactive_file x\n"), 0);
    EXPECT_EQUAL(line(""), 0);
    EXPECT_EQUAL(line("inactive_file "), 0);
}

static void a_part_of_a_limit_is_kept(void)
{
    EXPECT_EQUAL(keep_under_limit(NO_LIMIT), SIZE_MAX);
    EXPECT_EQUAL(keep_under_limit(160 * MiB), 10 * MiB);
    EXPECT_EQUAL(keep_under_limit(0), 0);
    EXPECT(!keep_limit_is_close(NO_LIMIT, SIZE_MAX - 1));
    EXPECT(!keep_limit_is_close(800 * MiB, 700 * MiB));
    EXPECT(keep_limit_is_close(800 * MiB, 700 * MiB + 1));
    EXPECT(keep_limit_is_close(800 * MiB, SIZE_MAX));
    EXPECT(keep_below_limit(160 * MiB) == 150 * MiB);
}

static void memory_is_held_up_to_the_hard_limit(void)
{
    size_t before = use.held;
    limits.hard = before + 10 * SLICE;
    EXPECT(use_hold(4 * SLICE));
    EXPECT(!use_hold(6 * SLICE + 1));
    EXPECT(!use_hold(SIZE_MAX));
    EXPECT_EQUAL(use.held, before + 4 * SLICE);
    EXPECT(use_hold(6 * SLICE));
    EXPECT(!use_hold(1));
    EXPECT(use_hold(0));
    limits.hard = before;
    EXPECT(!use_hold(1));
    EXPECT(use_hold(0));
    use_let_go(10 * SLICE);
    limits.hard = SIZE_MAX;
    EXPECT_EQUAL(use.held, before);
}

static void a_crossing_is_noted_once(void)
{
    EXPECT_EQUAL(use.held, 0);
    limits.soft = limits.full = 160 * SLICE;
    EXPECT(use_hold(160 * SLICE));
    EXPECT(!limits.passed);
    EXPECT(use_hold(SLICE));
    EXPECT(limits.passed);
    limits.passed = false;
    EXPECT(use_hold(SLICE));
    EXPECT(!limits.passed);
    use_let_go(11 * SLICE);
    EXPECT(use_hold(11 * SLICE));
    EXPECT(!limits.passed); /* it was hardly below */
    use_let_go(12 * SLICE);
    EXPECT(use_hold(11 * SLICE));
    EXPECT(limits.passed);
    use_let_go(161 * SLICE);
    EXPECT_EQUAL(use.held, 0);
}

int main(void)
{
    the_group_that_limits_memory_is_found();
    paths_may_hold_anything();
    what_makes_no_sense_is_no_group();
    parents_follow_up_to_the_root();
    numbers_are_whole();
    a_line_is_found_by_its_whole_name();
    a_part_of_a_limit_is_kept();
    memory_is_held_up_to_the_hard_limit();
    a_crossing_is_noted_once();
    puts("9 passed, 0 failed");
    return 0;
}
