/* operator new and delete.
 *
 * A C program that preloads the library has no C++ runtime, so what new needs of it (the
 * new-handler, the throw) is found by weak names; a program that calls new has them. The nothrow
 * forms of new stay the runtime's: they call ours and catch what the program's handler throws,
 * which nobody can do without the runtime. */
#include <new>

extern "C" {
#include "api/slow.h"
#include "front/cache.h"
}

#define EXPORT __attribute__((visibility("default")))

namespace std {
[[gnu::weak]] new_handler get_new_handler() noexcept;
[[gnu::weak, noreturn]] void __throw_bad_alloc();
} // namespace std

namespace {

using std::align_val_t;
using std::size_t;

/* The program's handler frees memory, or throws, or there is none any more. */
[[gnu::cold, gnu::noinline]] void *new_slow(size_t n, size_t align)
{
    for (;;) {
        if (void *p = slow_aligned(align, n))
            return p;
        std::new_handler handler =
            std::get_new_handler != nullptr ? std::get_new_handler() : nullptr;
        if (handler != nullptr)
            handler();
        else if (std::__throw_bad_alloc != nullptr)
            std::__throw_bad_alloc();
        else
            __builtin_trap();
    }
}

FAST void *new_fast(size_t n)
{
    if (unlikely(n > CLASS_MOST))
        return new_slow(n, 1);
    void *p;
    return likely(cache_pop(cache_mine, class_place(n), &p)) ? p : new_slow(n, 1);
}

FAST void delete_fast(void *p)
{
    if (unlikely(!cache_push(cache_mine, map_place(p), p)))
        slow_free(p);
}

} // namespace

EXPORT void *operator new(size_t n) { return new_fast(n); }
EXPORT void *operator new[](size_t n) { return new_fast(n); }
EXPORT void *operator new(size_t n, align_val_t align) { return new_slow(n, size_t(align)); }
EXPORT void *operator new[](size_t n, align_val_t align) { return new_slow(n, size_t(align)); }

/* A wrong size is no reason to free another block: the map knows the class. */
EXPORT void operator delete(void *p) noexcept { delete_fast(p); }
EXPORT void operator delete[](void *p) noexcept { delete_fast(p); }
EXPORT void operator delete(void *p, size_t) noexcept { delete_fast(p); }
EXPORT void operator delete[](void *p, size_t) noexcept { delete_fast(p); }
EXPORT void operator delete(void *p, align_val_t) noexcept { delete_fast(p); }
EXPORT void operator delete[](void *p, align_val_t) noexcept { delete_fast(p); }
EXPORT void operator delete(void *p, size_t, align_val_t) noexcept { delete_fast(p); }
EXPORT void operator delete[](void *p, size_t, align_val_t) noexcept { delete_fast(p); }
EXPORT void operator delete(void *p, const std::nothrow_t &) noexcept { delete_fast(p); }
EXPORT void operator delete[](void *p, const std::nothrow_t &) noexcept { delete_fast(p); }
EXPORT void operator delete(void *p, align_val_t, const std::nothrow_t &) noexcept
{
    delete_fast(p);
}
EXPORT void operator delete[](void *p, align_val_t, const std::nothrow_t &) noexcept
{
    delete_fast(p);
}
