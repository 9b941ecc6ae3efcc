// The sizes given to free_sized and to sized delete: with check_sizes each wrong one is reported,
// of blocks of every kind and in every call; without it none.
#include "check.h"

#include <fcntl.h>
#include <hakmem/hakmem.h>
#include <new>
#include <stdlib.h>
#include <unistd.h>

namespace {

using std::align_val_t;
using std::size_t;

constexpr size_t SMALL = 100, sizes[] = {SMALL, 20000, 100000, 1000000, 8000000};
bool checked;

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
void freed_with(const char *what, size_t n, size_t said, bool fits, Take take, Give give)
{
    void *p = NEED(what, take(n));
    size_t found = reports([&] { give(p, said); });
    size_t expected = checked && !fits;
    CHECK(found == expected, "%s of %zu bytes, said %zu: expected %zu reports, found %zu", what, n,
          said, expected, found);
    if (n == SMALL)
        CHECK(take(n) == p, "%s: expected the block to be free", what);
}

template <class Take, class Give>
void form(const char *what, Take take, Give give)
{
    for (size_t n : sizes) {
        freed_with(what, n, n, true, take, give);
        freed_with(what, n, 3 * n, false, take, give);
        freed_with(what, n, 1, false, take, give);
    }
}

TEST(frees_of_c)
{
    form("free_sized", hakmem_malloc, hakmem_free_sized);
    form(
        "free_aligned_sized", [](size_t n) { return hakmem_aligned_alloc(64, n); },
        [](void *p, size_t n) { hakmem_free_aligned_sized(p, 64, n); });
}

TEST(deletes)
{
    form(
        "delete", [](size_t n) { return ::operator new(n); },
        [](void *p, size_t n) { ::operator delete(p, n); });
    form(
        "delete[]", [](size_t n) { return ::operator new[](n); },
        [](void *p, size_t n) { ::operator delete[](p, n); });
    form(
        "delete, aligned", [](size_t n) { return ::operator new(n, align_val_t(64)); },
        [](void *p, size_t n) { ::operator delete(p, n, align_val_t(64)); });
    form(
        "delete[], aligned", [](size_t n) { return ::operator new[](n, align_val_t(64)); },
        [](void *p, size_t n) { ::operator delete[](p, n, align_val_t(64)); });
}

struct base {
    int one;
    virtual ~base() = default;
};

// As programs come to do it: delete by the type of a base without a virtual destructor.
struct plain {
    char bytes[100];
};
struct larger : plain {
    char more[900];
};

TEST(types)
{
    plain *p = new larger;
    size_t found = reports([&] { delete p; });
    CHECK_SIZE("reports of a delete by a smaller type", found, checked ? 1 : 0);
    base *b = new base;
    CHECK_SIZE("reports of a right delete", reports([&] { delete b; }), 0);
}

void delete_sized(void *p, size_t n) { ::operator delete(p, n); }
using give_sized = void (*)(void *, size_t);
give_sized both[] = {delete_sized, hakmem_free_sized};

// Each block of many, also those that stacks have room for, and in another thread.
void *each(void *give)
{
    constexpr size_t N = 8; // hakmem makes at most 100 reports
    void *blocks[N];
    for (void *&p : blocks)
        p = ::operator new(SMALL);
    size_t found = reports([&] {
        for (void *p : blocks)
            (*static_cast<give_sized *>(give))(p, SMALL / 4);
    });
    CHECK_SIZE("reports of blocks freed one after another", found, checked ? N : 0);
    return nullptr;
}

TEST(every_call)
{
    each(&both[0]);
    each(&both[1]);
    for (give_sized &give : both) {
        in_thread(each, &give);
    }
}

} // namespace

int main()
{
    const char *option = getenv("HAKMEM_CHECK_SIZES");
    checked = option != nullptr && strcmp(option, "on") == 0;
    return tests_main("sized");
}
