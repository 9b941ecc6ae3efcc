/* hakmem_option_set: which options change, what it refuses, and that what it changes is in force.
 */
#include "check.h"
#include "stats.h"

static uint64_t value_of(const char *name)
{
    uint64_t value = 0;
    CHECK_ERROR(name, hakmem_option(name, &value), 0);
    return value;
}

TEST(it_refuses_what_it_must)
{
    errno = E2BIG;
    CHECK_ERROR("null", hakmem_option_set(NULL, 1), ENOENT);
    CHECK_ERROR("no option", hakmem_option_set("compactt", 1), ENOENT);
    CHECK_ERROR("not a switch's", hakmem_option_set("compact", 2), EINVAL);
    CHECK_ERROR("not auto", hakmem_option_set("compact", HAKMEM_AUTO), EINVAL);
    CHECK_ERROR("too many", hakmem_option_set("keep_bytes", (uint64_t)1 << 60), EINVAL);
    CHECK_ERROR("at start only", hakmem_option_set("learn", 0), EPERM);
    CHECK_ERROR("errno", errno, E2BIG);
}

TEST(it_tells_what_is_set)
{
    static const char *const names[] = {"thread_bytes", "profile_samples", "keep_bytes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t before = value_of(names[i]);
        CHECK_ERROR(names[i], hakmem_option_set(names[i], 1000), 0);
        CHECK_SIZE(names[i], value_of(names[i]), 1000);
        CHECK_ERROR(names[i], hakmem_option_set(names[i], before), 0);
        CHECK_SIZE(names[i], value_of(names[i]), before);
    }
    CHECK_ERROR("capitals", hakmem_option_set("COMPACT", 0), 0);
    CHECK_SIZE("compact", value_of("compact"), 0);
    CHECK_ERROR("compact", hakmem_option_set("compact", 1), 0);
}

static void use_and_free_much(void)
{
    char *big = NEED("64 MiB", do_malloc(64 * MiB));
    memset(big, 1, 64 * MiB);
    do_free(big);
}

static void use_and_free_slices(void)
{
    static void *blocks[40];
    for (unsigned i = 0; i < 40; i++)
        blocks[i] = memset(NEED("1 MiB", do_malloc(MiB)), 1, MiB);
    for (unsigned i = 0; i < 40; i++)
        do_free(blocks[i]);
}

TEST(what_is_beyond_a_limit_goes_back)
{
    use_and_free_much();
    size_t kept = stats_now().kept;
    CHECK(kept <= MiB, "of a freed block: expected 1 MiB or less, found %zu", kept);
    CHECK_ERROR("much", hakmem_option_set("keep_bytes", 1024 * MiB), 0);
    use_and_free_much();
    kept = stats_now().kept;
    CHECK(kept >= 64 * MiB, "a freed block is kept: expected 64 MiB or more, found %zu", kept);
    use_and_free_slices();
    CHECK_ERROR("none", hakmem_option_set("keep_bytes", 0), 0);
    CHECK_SIZE("kept", stats_now().kept, 0);
    CHECK_SIZE("retained", stats_now().retained, 0);
    CHECK_ERROR("auto", hakmem_option_set("keep_bytes", HAKMEM_AUTO), 0);
}

static void *change_often(void *nothing)
{
    for (unsigned i = 0; i < 300; i++) {
        hakmem_option_set("compact", i % 2);
        hakmem_option_set("thread_bytes", (i % 3) * MiB);
        hakmem_option_set("keep_bytes", i % 5 == 0 ? HAKMEM_AUTO : i * KiB * 64);
    }
    return nothing;
}

static void *allocate(void *nothing)
{
    void *blocks[64] = {NULL};
    for (unsigned i = 0; i < 200000; i++) {
        do_free(blocks[i % 64]);
        blocks[i % 64] = do_malloc(1 + i * 37 % 20000);
    }
    for (unsigned i = 0; i < 64; i++)
        do_free(blocks[i]);
    return nothing;
}

static void *change_or_allocate(void *number)
{
    return (uintptr_t)number % 2 != 0 ? allocate(NULL) : change_often(NULL);
}

TEST(many_threads_change_them_and_allocate)
{
    in_threads(4, change_or_allocate);
    CHECK_ERROR("bytes", hakmem_option_set("thread_bytes", 8 * MiB), 0);
    CHECK_ERROR("auto", hakmem_option_set("keep_bytes", HAKMEM_AUTO), 0);
    CHECK_ERROR("compact", hakmem_option_set("compact", 1), 0);
}

int main(void) { return tests_main("settings"); }
