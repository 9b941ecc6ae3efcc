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
#include <stdint.h>
#include <stdio.h>

/** The version of this header; hakmem_version tells the library's. Numbers compare as
 * HAKMEM_VERSION >= 10203 for 1.2.3. */
#define HAKMEM_VERSION_MAJOR 0
#define HAKMEM_VERSION_MINOR 1
#define HAKMEM_VERSION_PATCH 0
#define HAKMEM_VERSION \
    (HAKMEM_VERSION_MAJOR * 10000 + HAKMEM_VERSION_MINOR * 100 + HAKMEM_VERSION_PATCH)

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

/** realloc(p, count * size); null with ENOMEM also when the product overflows, and p is as it was.
 */
void *hakmem_reallocarray(void *p, size_t count, size_t size)
    __attribute__((alloc_size(2, 3), warn_unused_result));

/** C23: frees a block of malloc, calloc or realloc, for which `n` bytes were asked; null does
 * nothing. A wrong n frees the block all the same. Keeps errno. */
void hakmem_free_sized(void *p, size_t n);

/** C23: the same for a block of aligned_alloc(align, n). */
void hakmem_free_aligned_sized(void *p, size_t align, size_t n);

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

/* ---- glibc's extensions, about hakmem's memory ---- */

/** Gives free memory back to the kernel, as hakmem_purge; free slices of `pad` bytes, rounded down
 * to 64 KiB, may keep their pages. Returns 1 if memory went back, else 0. */
int hakmem_malloc_trim(size_t pad);

/** Members, order and types as in glibc's struct mallinfo2; bytes and counts. */
struct hakmem_mallinfo2 {
    size_t arena;    /**< bytes in superslabs and kept mappings: uordblks + fordblks */
    size_t ordblks;  /**< free blocks in slabs */
    size_t smblks;   /**< free blocks in thread caches and transfer caches */
    size_t hblks;    /**< blocks in mappings of their own (above 2 MiB) */
    size_t hblkhd;   /**< bytes of these mappings */
    size_t usmblks;  /**< 0 */
    size_t fsmblks;  /**< bytes of the blocks that smblks counts */
    size_t uordblks; /**< bytes in blocks that the program has, without those of hblks */
    size_t fordblks; /**< bytes of arena that the program doesn't have */
    size_t keepcost; /**< bytes that malloc_trim(0) can give back at once */
};

/** The same as int: what is above INT_MAX is INT_MAX. */
struct hakmem_mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

/** What memory is used for now. Takes all of the allocator's locks for the moment. */
struct hakmem_mallinfo2 hakmem_mallinfo2(void);
struct hakmem_mallinfo hakmem_mallinfo(void);

/** Writes the same and more as XML to a stream, in glibc's format (version 1) with an element
 * `hakmem` beside. `options` is 0, else nothing is written and EINVAL returned. Else 0. */
int hakmem_malloc_info(int options, FILE *stream);

/** Writes a summary to standard error, without stdio. */
void hakmem_malloc_stats(void);

/** Sets a parameter by glibc's M_ number, for the process; best before there are threads. Returns 1
 * if it holds or only tunes what hakmem hasn't, 0 if hakmem can't do it or doesn't know it.
 *
 *   M_TRIM_THRESHOLD  free slices that keep their pages, in bytes, at most; negative: all, and
 *                     nothing goes back for lying idle from now on
 *   M_MMAP_MAX        0: free huge blocks are never unmapped; else they are, above a budget
 *   M_ARENA_MAX       threads that start from now on share so many shards; at least 1
 *   M_MXFAST, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_TEST
 *                     no effect; 1 for the values that glibc takes
 *   M_CHECK_ACTION    1 for values that end the program on misuse, as hakmem does
 *   M_PERTURB         1 for 0, which fills no blocks, as hakmem does */
int hakmem_mallopt(int parameter, int value);

/* ---- hakmem's own ---- */

/** The current value of an option, named as in docs/options.md ("stack_bytes") in any case, into
 * *value: sizes in bytes, times in milliseconds, switches 0 or 1,
 * modes 0 (frozen), 1 (observe) or 2 (learn); HAKMEM_AUTO for `auto`. Returns 0, or ENOENT when
 * there is no such option or `name` is null; then *value is as it was. Options are read once, at
 * the process's first call, and stay as they are. errno is kept. */
#define HAKMEM_AUTO UINT64_MAX
int hakmem_option(const char *name, uint64_t *value);

/** Bytes that a block of malloc(n) really has, what malloc_usable_size tells of it; 0 where n is
 * more than malloc ever gives. Since 0.1. */
size_t hakmem_good_size(size_t n);

/** Gives the memory of all free blocks back to the kernel, as far as it can be had: those in the
 * calling thread's cache, in transfer caches and in caches of threads that are not at work just
 * then, free pages in slabs, whole free slices, kept mappings. Returns bytes that went back and may
 * have held pages. Since 0.1. */
size_t hakmem_purge(void);

/** What all memory is used for at one moment, in bytes; from `program` to `map` they add up to
 * `mapped`. Later versions add members at the end. */
struct hakmem_stats {
    size_t mapped;        /**< mapped for hakmem by the kernel, touched or not */
    size_t program;       /**< in blocks that the program has */
    size_t thread_caches; /**< in free blocks in threads' caches */
    size_t transfer;      /**< in free blocks in transfer caches */
    size_t free_in_slabs; /**< in free blocks of slabs in use */
    size_t rest;          /**< behind a slab's last block, behind a large block's end */
    size_t retained;      /**< in free slices that may hold pages */
    size_t untouched;     /**< in free slices that hold none */
    size_t kept;          /**< in mappings kept for the next huge block */
    size_t metadata;      /**< in the allocator's own structures */
    size_t map;           /**< in the address map */
    size_t mapped_most;   /**< the most that `mapped` has been */
    size_t superslabs;    /**< regions of 4 MiB */
    size_t slabs;         /**< runs of slices that hold blocks of one class */
    size_t large_blocks;  /**< blocks of slices of their own, to 2 MiB */
    size_t huge_blocks;   /**< blocks in mappings of their own */
    size_t kept_mappings; /**< mappings that `kept` counts */
    size_t threads;       /**< threads that have a cache */
    size_t refills;       /**< of empty stacks, since the start */
    size_t flushes;       /**< of full stacks, since the start */
};

/** Fills in the first `size` bytes of *stats, which is sizeof *stats as the caller knows it; what
 * this library doesn't know is 0. Returns how many bytes it knows. Takes all of the allocator's
 * locks for the moment. Since 0.1. */
size_t hakmem_stats(struct hakmem_stats *stats, size_t size);

/** The library's version, as HAKMEM_VERSION. Since 0.1. */
unsigned hakmem_version(void);

/** Whether every free is checked at once from now on, at the cost of most of the speed: a double
 * free with others between, or a pointer into a block, is then reported by the free itself and not
 * when the block leaves the thread's cache. The option `check_frees` has it on from the start.
 * Returns what it was. Threads that are in the middle of a call finish it as before. Switching it
 * on calls membarrier and madvise(MADV_NORMAL), which a filter of system calls may not permit; the
 * option does not. Since 0.1. */
int hakmem_check_frees(int on);

/** Walks the heap, checks that all structures agree, and reports what doesn't on standard error, a
 * line each. Returns 0 if all is whole, else how many rules were found broken; -1 with ENOMEM when
 * there is no memory for the walk (about 1/128 of what is mapped). Other threads wait meanwhile at
 * their next refill or flush; of what they change without a lock only the bounds are checked, so a
 * process of one thread is checked best. Since 0.1. */
long hakmem_check(void);

#ifdef __cplusplus
}
#endif

#endif
