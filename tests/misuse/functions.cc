// A block that one function allocates and another frees: `misuse_functions BYTES MAKER FUNCTION`.
// Prints "end" if it comes to its end.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <unistd.h>

namespace {

using std::align_val_t;

struct maker {
    const char *name;
    void *(*take)(size_t n);
};

struct function {
    const char *name;
    void (*give)(void *p, size_t n);
};

const maker makers[] = {
    {"malloc", [](size_t n) { return malloc(n); }},
    {"calloc", [](size_t n) { return calloc(1, n); }},
    {"realloc", [](size_t n) { return realloc(malloc(n / 4 + 1), n); }},
    {"aligned_alloc", [](size_t n) { return aligned_alloc(64, n); }},
    {"new", [](size_t n) { return ::operator new(n); }},
    {"new_nothrow", [](size_t n) { return ::operator new(n, std::nothrow); }},
    {"new_aligned", [](size_t n) { return ::operator new(n, align_val_t(64)); }},
    {"new[]", [](size_t n) { return ::operator new[](n); }},
    {"new[]_nothrow", [](size_t n) { return ::operator new[](n, std::nothrow); }},
    {"new[]_aligned", [](size_t n) { return ::operator new[](n, align_val_t(64)); }},
};

const function functions[] = {
    {"free", [](void *p, size_t) { free(p); }},
    {"realloc", [](void *p, size_t n) { free(realloc(p, n)); }},
    {"realloc_more", [](void *p, size_t n) { free(realloc(p, 4 * n)); }},
    {"delete", [](void *p, size_t) { ::operator delete(p); }},
    {"delete_sized", [](void *p, size_t n) { ::operator delete(p, n); }},
    {"delete_nothrow", [](void *p, size_t) { ::operator delete(p, std::nothrow); }},
    {"delete_aligned", [](void *p, size_t) { ::operator delete(p, align_val_t(64)); }},
    {"delete_aligned_sized", [](void *p, size_t n) { ::operator delete(p, n, align_val_t(64)); }},
    {"delete[]", [](void *p, size_t) { ::operator delete[](p); }},
    {"delete[]_sized", [](void *p, size_t n) { ::operator delete[](p, n); }},
    {"delete[]_nothrow", [](void *p, size_t) { ::operator delete[](p, std::nothrow); }},
    {"delete[]_aligned", [](void *p, size_t) { ::operator delete[](p, align_val_t(64)); }},
    {"delete[]_aligned_sized",
     [](void *p, size_t n) { ::operator delete[](p, n, align_val_t(64)); }},
};

template <typename Named, size_t count>
const Named &named(const Named (&all)[count], const char *name)
{
    for (const Named &one : all)
        if (strcmp(one.name, name) == 0)
            return one;
    fprintf(stderr, "no %s\n", name);
    exit(2);
}

} // namespace

int main(int, char **arguments)
{
    size_t n = strtoul(arguments[1], nullptr, 10);
    const maker &by = named(makers, arguments[2]);
    const function &with = named(functions, arguments[3]);
    void *p = by.take(n);
    // Until it is a guarded block, which has as many bytes as requested.
    for (int i = 0; n % 16 == 13 && malloc_usable_size(p) != n && i < 1000000; i++) {
        if (i % 1000 == 0)
            usleep(1000);
        p = by.take(n);
    }
    if (p == nullptr || malloc_usable_size(p) < n)
        return 3;
    memset(p, 1, n);
    with.give(p, n);
    for (int i = 0; i < 100; i++)
        delete[] new char[n];
    puts("end");
    return 0;
}
