/* Shared words. Everything that two threads may touch without a common lock goes through these
 * functions, so that the code shows, where it is used, how it is ordered. */
#ifndef HAKMEM_BASE_ATOMIC_H
#define HAKMEM_BASE_ATOMIC_H

#include "base/asm.h"

#define load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define add_relaxed(p, v) __atomic_add_fetch((p), (v), __ATOMIC_RELAXED)
#define sub_relaxed(p, v) __atomic_sub_fetch((p), (v), __ATOMIC_RELAXED)

/* Words of the calling thread's own that another may look at, or change by exchange: plain
 * accesses, which the compiler may make part of another instruction, and which processors make
 * whole. ThreadSanitizer must be told. */
#if UNDER_TSAN
#define load_own(p) load_relaxed(p)
#define store_own(p, v) store_relaxed(p, v)
#else
#define load_own(p) (*(p))
#define store_own(p, v) ((void)(*(p) = (v)))
#endif

#endif
