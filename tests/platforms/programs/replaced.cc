// The forms of operator new and delete that a program replaces: REPLACED has a bit for each. They
// count their calls, and take memory from malloc.
#include "forms.h"

#include <cstdlib>
#include <new>

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

const unsigned replaced = REPLACED;
unsigned long calls[FORMS + 1];

#define HAS(form) ((REPLACED) >> (form)&1)

namespace {

[[maybe_unused]] void *take(enum form form, size_t n, align_val_t align = align_val_t{16})
{
    calls[form]++;
    for (;;) {
        void *p = nullptr;
        if (posix_memalign(&p, size_t(align), n) == 0)
            return p;
        std::new_handler handler = std::get_new_handler();
        if (handler == nullptr)
            throw std::bad_alloc();
        handler();
    }
}

[[maybe_unused]] void *take_nothrow(enum form form, size_t n, align_val_t align = align_val_t{16})
{
    try {
        return take(form, n, align);
    } catch (...) {
        return nullptr;
    }
}

[[maybe_unused]] void give(enum form form, void *p)
{
    calls[form]++;
    std::free(p);
}

} // namespace

// The numbers are those of `enum form`.
#if HAS(0)
void *operator new(size_t n) { return take(NEW, n); }
#endif
#if HAS(1)
void *operator new[](size_t n) { return take(NEW_ARRAY, n); }
#endif
#if HAS(2)
void *operator new(size_t n, align_val_t a) { return take(NEW_ALIGNED, n, a); }
#endif
#if HAS(3)
void *operator new[](size_t n, align_val_t a) { return take(NEW_ARRAY_ALIGNED, n, a); }
#endif
#if HAS(4)
void *operator new(size_t n, const nothrow_t &) noexcept { return take_nothrow(NEW_NOTHROW, n); }
#endif
#if HAS(5)
void *operator new[](size_t n, const nothrow_t &) noexcept
{
    return take_nothrow(NEW_ARRAY_NOTHROW, n);
}
#endif
#if HAS(6)
void *operator new(size_t n, align_val_t a, const nothrow_t &) noexcept
{
    return take_nothrow(NEW_ALIGNED_NOTHROW, n, a);
}
#endif
#if HAS(7)
void *operator new[](size_t n, align_val_t a, const nothrow_t &) noexcept
{
    return take_nothrow(NEW_ARRAY_ALIGNED_NOTHROW, n, a);
}
#endif
#if HAS(8)
void operator delete(void *p) noexcept { give(DELETE, p); }
#endif
#if HAS(9)
void operator delete[](void *p) noexcept { give(DELETE_ARRAY, p); }
#endif
#if HAS(10)
void operator delete(void *p, align_val_t) noexcept { give(DELETE_ALIGNED, p); }
#endif
#if HAS(11)
void operator delete[](void *p, align_val_t) noexcept { give(DELETE_ARRAY_ALIGNED, p); }
#endif
#if HAS(12)
void operator delete(void *p, size_t) noexcept { give(DELETE_SIZED, p); }
#endif
#if HAS(13)
void operator delete[](void *p, size_t) noexcept { give(DELETE_ARRAY_SIZED, p); }
#endif
#if HAS(14)
void operator delete(void *p, size_t, align_val_t) noexcept { give(DELETE_ALIGNED_SIZED, p); }
#endif
#if HAS(15)
void operator delete[](void *p, size_t, align_val_t) noexcept
{
    give(DELETE_ARRAY_ALIGNED_SIZED, p);
}
#endif
#if HAS(16)
void operator delete(void *p, const nothrow_t &) noexcept { give(DELETE_NOTHROW, p); }
#endif
#if HAS(17)
void operator delete[](void *p, const nothrow_t &) noexcept { give(DELETE_ARRAY_NOTHROW, p); }
#endif
#if HAS(18)
void operator delete(void *p, align_val_t, const nothrow_t &) noexcept
{
    give(DELETE_ALIGNED_NOTHROW, p);
}
#endif
#if HAS(19)
void operator delete[](void *p, align_val_t, const nothrow_t &) noexcept
{
    give(DELETE_ARRAY_ALIGNED_NOTHROW, p);
}
#endif
