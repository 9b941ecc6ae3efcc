// What sized frees are told, where sizes are looked at: in builds that look at every call, and
// where only those look that don't end on the fast path. The insides are linked in, for the policy.
#include "check.h"

#include <fcntl.h>
#include <hakmem/hakmem.h>
#include <new>
#include <unistd.h>

extern "C" {
#include "base/policy.h"
}

namespace {

using std::align_val_t;
using std::size_t;

constexpr size_t SMALL = 100, LARGE = 1000000;

// How often a call says that a size does not fit.
template <class Call>
size_t reports(Call call)
{
    static char text[65536];
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600), saved = dup(STDERR_FILENO);
    CHECK(file >= 0, "a file in /tmp: %s", error_name(errno));
    dup2(file, STDERR_FILENO);
    call();
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t got = pread(file, text, sizeof text - 1, 0);
    size_t used = got < 0 ? 0 : size_t(got);
    close(file);
    text[used] = '\0';
    size_t count = 0;
    for (const char *at = text;
         (at = strstr(at, "the size that was said does not fit")) != nullptr;)
        at++, count++;
    return count;
}

// A block of n bytes that is freed with another size: reported or not, and free.
template <class Take, class Give>
void freed_with(const char *what, size_t n, size_t said, size_t expected, Take take, Give give)
{
    void *p = NEED(what, take(n));
    size_t found = reports([&] { give(p, said); });
    CHECK(found == expected, "%s of %zu bytes, said %zu: expected %zu reports, found %zu", what, n,
          said, expected, found);
    if (n == SMALL)
        CHECK(take(n) == p, "%s: expected the block to be free", what);
}

// `every`: how many reports there are if every call is checked. `slow`: for a large block, if only
// calls that take the slow path are checked.
template <class Take, class Give>
void form(const char *what, size_t slow, Take take, Give give)
{
    const size_t every = EVERY_SIZE_CHECKED;
    for (size_t on = 0; on <= 1; on++) {
        policy.check_sizes = on;
        freed_with(what, SMALL, SMALL, 0, take, give);
        freed_with(what, LARGE, LARGE, 0, take, give);
        freed_with(what, SMALL, 3 * SMALL, on * every, take, give);
        freed_with(what, SMALL, 1, on * every, take, give);
        freed_with(what, LARGE, SMALL, on * (every | slow), take, give);
    }
    policy.check_sizes = 0;
}

void frees_of_c()
{
    form("free_sized", 1, hakmem_malloc, hakmem_free_sized);
    form(
        "free_aligned_sized", 1, [](size_t n) { return hakmem_aligned_alloc(64, n); },
        [](void *p, size_t n) { hakmem_free_aligned_sized(p, 64, n); });
}

void deletes()
{
    form(
        "delete", 0, [](size_t n) { return ::operator new(n); },
        [](void *p, size_t n) { ::operator delete(p, n); });
    form(
        "delete[]", 0, [](size_t n) { return ::operator new[](n); },
        [](void *p, size_t n) { ::operator delete[](p, n); });
    form(
        "delete, aligned", 0, [](size_t n) { return ::operator new(n, align_val_t(64)); },
        [](void *p, size_t n) { ::operator delete(p, n, align_val_t(64)); });
    form(
        "delete[], aligned", 0, [](size_t n) { return ::operator new[](n, align_val_t(64)); },
        [](void *p, size_t n) { ::operator delete[](p, n, align_val_t(64)); });
}

// Of small blocks release builds look at the one that finds the stack full.
void now_and_then()
{
    constexpr size_t N = 20000;
    static void *blocks[N];
    for (void *&p : blocks)
        p = NEED("malloc", hakmem_malloc(SMALL));
    policy.check_sizes = 1;
    size_t found = reports([&] {
        for (void *p : blocks)
            hakmem_free_sized(p, SMALL / 4);
    });
    policy.check_sizes = 0;
    CHECK(found > 0, "%zu blocks: expected some reports, found none", N);
}

} // namespace

int main()
{
    check_start("sized");
    hakmem_free(hakmem_malloc(1));
    policy.abort_on_misuse = 0;
    RUN(frees_of_c);
    RUN(deletes);
    RUN(now_and_then);
    return check_end();
}
