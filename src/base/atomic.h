/* Shared words. Everything that two threads may touch without a common lock goes through these,
 * so that a reader sees at the place of use what orders it. */
#ifndef HAKMEM_BASE_ATOMIC_H
#define HAKMEM_BASE_ATOMIC_H

#define load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define add_relaxed(p, v) __atomic_add_fetch((p), (v), __ATOMIC_RELAXED)
#define sub_relaxed(p, v) __atomic_sub_fetch((p), (v), __ATOMIC_RELAXED)

#endif
