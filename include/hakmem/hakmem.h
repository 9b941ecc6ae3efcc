/** \file
 * hakmem beside another malloc: the same functions under names of their own.
 *
 * A program that preloads or links libhakmem.so needs none of these: there malloc and its kin are
 * hakmem's. All sizes and alignments are in bytes. All functions may be called by any thread at any
 * time; blocks may be freed by any thread. None may be called from a signal handler that
 * interrupted one of them. Blocks of hakmem and of another malloc must not be mixed: a pointer
 * that is not hakmem's is reported on standard error and ends the program.
 *
 * Since 0.1.
 */
#ifndef HAKMEM_HAKMEM_H
#define HAKMEM_HAKMEM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A block of at least n bytes at a multiple of 16; not zeroed. n = 0 gets a block of its own too.
 * Null with errno ENOMEM without memory or for n above PTRDIFF_MAX; else errno is kept. */
void *hakmem_malloc(size_t n) __attribute__((malloc, alloc_size(1), warn_unused_result));

/** A zeroed block for `count` objects of `size`; null with ENOMEM also when the product overflows.
 */
void *hakmem_calloc(size_t count, size_t size)
    __attribute__((malloc, alloc_size(1, 2), warn_unused_result));

/** Makes the block at p hold n bytes, perhaps elsewhere; what it held is kept up to the smaller
 * size. Null p: malloc(n). n = 0: frees p and returns null, errno kept. Without memory: null with
 * ENOMEM, and p is as it was. */
void *hakmem_realloc(void *p, size_t n) __attribute__((alloc_size(2), warn_unused_result));

/** Frees a block; null does nothing. Keeps errno. */
void hakmem_free(void *p);

/** A block of at least n bytes at a multiple of `align`, a power of two, else null with EINVAL.
 * n need not be a multiple of `align`. */
void *hakmem_aligned_alloc(size_t align, size_t n)
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/** The same; an alignment that is no power of two is rounded up to one. */
void *hakmem_memalign(size_t align, size_t n)
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/** The same into *result. Returns 0, EINVAL when `align` is no power of two or no multiple of
 * sizeof(void *), or ENOMEM; then *result is as it was. errno is kept. */
int hakmem_posix_memalign(void **result, size_t align, size_t n)
    __attribute__((warn_unused_result));

/** The same at a multiple of the page size. */
void *hakmem_valloc(size_t n) __attribute__((malloc, alloc_size(1), warn_unused_result));

/** The same, and n rounded up to whole pages, at least one. */
void *hakmem_pvalloc(size_t n) __attribute__((malloc, warn_unused_result));

/** Bytes that may be used at p, at least what was asked; all of them are kept by realloc. 0 for
 * null. */
size_t hakmem_malloc_usable_size(const void *p);

#ifdef __cplusplus
}
#endif

#endif
