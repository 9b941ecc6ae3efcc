/* What new needs of the C++ runtime, where there is one, and catches by it (cxx_catch.cc). */
#ifndef HAKMEM_API_CXX_H
#define HAKMEM_API_CXX_H

#include <new>

extern "C" {
#include "base/defs.h"
#include "base/misuse.h"
}

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

using plain_new = void *(*)(std::size_t);
using aligned_new = void *(*)(std::size_t, std::align_val_t);

/* Calls a form that the program has replaced; null where it throws. */
HIDDEN void *null_if_thrown(plain_new form, std::size_t n);
HIDDEN void *null_if_thrown(aligned_new form, std::size_t n, std::align_val_t align);

/* Calls the program's new-handler, which may have freed memory. False where there is none, or none
 * whose exceptions could be caught, and where it threw. */
HIDDEN bool handler_returned();

#endif
