/* operator new with a hint for the allocator, as compilers make calls of it:
 *
 * - with __hot_cold_t, how often the block will be used, as LLVM's memory profile found it. The
 *   hint changes nothing: the thread's stack has the block that was freed last, hot or not.
 * - __size_returning_new, which also says how many bytes the block has.
 * - with the token of Clang's -fsanitize=alloc-token, which becomes a name in heap profiles.
 *
 * What the program has replaced is called in their place (see cxx.cc); its blocks are its own. */
#include "api/cxx.h"

extern "C" {
#include "api/slow.h"
#include "front/cache.h"
}

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

enum class __hot_cold_t : uint8_t;

struct __sized_ptr_t {
    void *p;
    size_t n;
};

namespace {

FAST void *new_token(size_t n, size_t token, enum maker maker)
{
    void *p;
    return likely(malloc_pop(n, &p)) ? p : new_slow_named(n, 1, by_token, token, maker);
}

using plain_nothrow = void *(*)(size_t, const nothrow_t &) noexcept;
using aligned_nothrow = void *(*)(size_t, align_val_t, const nothrow_t &) noexcept;

template <typename Form, typename... Arguments>
[[gnu::noinline]] void *under_token(size_t token, Form *form, Arguments... arguments)
{
    struct name_text room;
    name_begin(&room, by_token, token);
    void *p = form(arguments...);
    name_end();
    return p;
}

__sized_ptr_t sized(void *p, size_t n, bool ours)
{
    return {p, ours ? block_usable(p, "__size_returning_new", RETURN_ADDRESS) : n};
}

} // namespace

/* ---- hot and cold ---- */

EXPORT void *operator new(size_t n, __hot_cold_t) { return operator new(n); }
EXPORT void *operator new[](size_t n, __hot_cold_t) { return operator new[](n); }
EXPORT void *operator new(size_t n, align_val_t align, __hot_cold_t)
{
    return operator new(n, align);
}
EXPORT void *operator new[](size_t n, align_val_t align, __hot_cold_t)
{
    return operator new[](n, align);
}
EXPORT void *operator new(size_t n, const nothrow_t &tag, __hot_cold_t) noexcept
{
    return operator new(n, tag);
}
EXPORT void *operator new[](size_t n, const nothrow_t &tag, __hot_cold_t) noexcept
{
    return operator new[](n, tag);
}
EXPORT void *operator new(size_t n, align_val_t align, const nothrow_t &tag, __hot_cold_t) noexcept
{
    return operator new(n, align, tag);
}
EXPORT void *operator new[](size_t n, align_val_t align, const nothrow_t &tag,
                            __hot_cold_t) noexcept
{
    return operator new[](n, align, tag);
}

/* ---- the size, too ---- */

extern "C" {

EXPORT __sized_ptr_t __size_returning_new(size_t n)
{
    return sized(operator new(n), n, new_is_ours());
}
EXPORT __sized_ptr_t __size_returning_new_hot_cold(size_t n, __hot_cold_t)
{
    return sized(operator new(n), n, new_is_ours());
}
EXPORT __sized_ptr_t __size_returning_new_aligned(size_t n, align_val_t align)
{
    return sized(operator new(n, align), n, new_aligned_is_ours());
}
EXPORT __sized_ptr_t __size_returning_new_aligned_hot_cold(size_t n, align_val_t align,
                                                           __hot_cold_t)
{
    return sized(operator new(n, align), n, new_aligned_is_ours());
}

/* ---- tokens ---- */

EXPORT void *__alloc_token__Znwm(size_t n, size_t token)
{
    return likely(new_is_ours()) ? new_token(n, token, MAKER_NEW) : operator new(n);
}
EXPORT void *__alloc_token__Znam(size_t n, size_t token)
{
    return likely(new_array_is_ours()) ? new_token(n, token, MAKER_NEW_ARRAY) : operator new[](n);
}
EXPORT void *__alloc_token__ZnwmSt11align_val_t(size_t n, align_val_t align, size_t token)
{
    return likely(new_aligned_is_ours())
               ? new_slow_named(n, size_t(align), by_token, token, MAKER_NEW)
               :
               operator new(n, align);
}
EXPORT void *__alloc_token__ZnamSt11align_val_t(size_t n, align_val_t align, size_t token)
{
    return likely(new_array_aligned_is_ours())
               ? new_slow_named(n, size_t(align), by_token, token, MAKER_NEW_ARRAY)
               :
               operator new[](n, align);
}
EXPORT void *__alloc_token__ZnwmRKSt9nothrow_t(size_t n, const nothrow_t &tag,
                                               size_t token) noexcept
{
    return under_token(token, static_cast<plain_nothrow>(operator new), n, tag);
}
EXPORT void *__alloc_token__ZnamRKSt9nothrow_t(size_t n, const nothrow_t &tag,
                                               size_t token) noexcept
{
    return under_token(token, static_cast<plain_nothrow>(operator new[]), n, tag);
}
EXPORT void *__alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(size_t n, align_val_t align,
                                                              const nothrow_t &tag,
                                                              size_t token) noexcept
{
    return under_token(token, static_cast<aligned_nothrow>(operator new), n, align, tag);
}
EXPORT void *__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(size_t n, align_val_t align,
                                                              const nothrow_t &tag,
                                                              size_t token) noexcept
{
    return under_token(token, static_cast<aligned_nothrow>(operator new[]), n, align, tag);
}
}
