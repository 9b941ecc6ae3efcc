/* What the files of C++'s new and delete share. */
#ifndef HAKMEM_API_CXX_H
#define HAKMEM_API_CXX_H

#include <new>

extern "C" {
#include "base/defs.h"
#include "base/misuse.h"
}

#define EXPORT __attribute__((visibility("default"), weak))

/* In an archive this is a member that only a program with new takes in. A weak name would leave the
 * runtime's members out. */
#ifdef HAKMEM_ARCHIVE
#define IF_THERE
#define IS_THERE(function) true
#else
#define IF_THERE gnu::weak
#define IS_THERE(function) ((function) != nullptr)
#endif

namespace std {
[[IF_THERE]] new_handler get_new_handler() noexcept;
} // namespace std

/* Weak from their first use on. */
EXPORT void *operator new(std::size_t);
EXPORT void *operator new[](std::size_t);
EXPORT void *operator new(std::size_t, std::align_val_t);
EXPORT void *operator new[](std::size_t, std::align_val_t);

using plain_new = void *(*)(std::size_t);
using aligned_new = void *(*)(std::size_t, std::align_val_t);

extern "C" {
/* The forms of cxx.cc, whatever the program has in their place. */
[[gnu::malloc, gnu::alloc_size(1)]] HIDDEN void *new_own(std::size_t);
[[gnu::malloc, gnu::alloc_size(1)]] HIDDEN void *new_own_array(std::size_t);
[[gnu::malloc, gnu::alloc_size(1)]] HIDDEN void *new_own_aligned(std::size_t, std::align_val_t);
[[gnu::malloc, gnu::alloc_size(1)]] HIDDEN void *new_own_array_aligned(std::size_t,
                                                                       std::align_val_t);

/* The slow path of new with a name, for blocks that the deletes of `maker` free. */
HIDDEN void *new_slow_named(std::size_t n, std::size_t align, const char *name, std::size_t token,
                            enum maker maker);

/* Calls a form that the program has replaced; null where it throws. */
HIDDEN void *null_if_thrown(plain_new form, std::size_t n);
HIDDEN void *null_if_aligned_thrown(aligned_new form, std::size_t n, std::align_val_t align);

/* Calls the program's new-handler, which may have freed memory. False where there is none, or none
 * whose exceptions could be caught, and where it threw. */
HIDDEN bool handler_returned();
}

/* Whether a call of this form comes to ours, by way of those that the standard says. */
FAST bool new_is_ours() { return static_cast<plain_new>(operator new) == new_own; }

FAST bool new_array_is_ours()
{
    return static_cast<plain_new>(operator new[]) == new_own_array && new_is_ours();
}

FAST bool new_aligned_is_ours()
{
    return static_cast<aligned_new>(operator new) == new_own_aligned;
}

FAST bool new_array_aligned_is_ours()
{
    return static_cast<aligned_new>(operator new[]) == new_own_array_aligned &&
           new_aligned_is_ours();
}

#endif
