/** \file
 * malloc and related functions under names that begin with hakmem_, for programs that also use
 * another malloc; and functions that only hakmem has.
 *
 * In a program that preloads or links libhakmem.so, malloc itself is hakmem's, so it does not need
 * the first kind. All sizes and alignments are in bytes. Any thread may call any function at any
 * time and free any block. A signal handler that interrupted one of these functions may call none
 * of them. A block of another malloc must not be passed to hakmem: hakmem reports it on standard
 * error and ends the program.
 *
 * Words: small blocks of one size lie side by side in a slab, which consists of slices of 64 KiB.
 * A superslab is the region that slices are taken from. A huge block (above 2 MiB) is a mapping.
 *
 * Since 0.1.
 */
#ifndef HAKMEM_HAKMEM_H
#define HAKMEM_HAKMEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** The version of this header; hakmem_version() returns the library's. To require
 * 1.2.3, test HAKMEM_VERSION >= 10203. */
#define HAKMEM_VERSION_MAJOR 0
#define HAKMEM_VERSION_MINOR 1
#define HAKMEM_VERSION_PATCH 0
#define HAKMEM_VERSION \
    (HAKMEM_VERSION_MAJOR * 10000 + HAKMEM_VERSION_MINOR * 100 + HAKMEM_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/** Returns a block of at least n bytes at a multiple of 16; its content is not zeroed. If n is 0,
 * the block is unique too. Returns null with errno ENOMEM if there is no memory or n is above
 * PTRDIFF_MAX; otherwise errno does not change. */
void *hakmem_malloc(size_t n) __attribute__((malloc, alloc_size(1), warn_unused_result));

/** Returns a zeroed block for `count` objects of `size` bytes. Returns null with ENOMEM also if the
 * product overflows. */
void *hakmem_calloc(size_t count, size_t size)
    __attribute__((malloc, alloc_size(1, 2), warn_unused_result));

/** Changes the size of the block at p to n bytes; the block may move. The content is preserved up
 * to the smaller size. If p is null, it is hakmem_malloc(n). If n is 0, it frees p, returns null
 * and does not change errno. If there is no memory, it returns null with ENOMEM and leaves the
 * block unchanged. */
void *hakmem_realloc(void *p, size_t n) __attribute__((alloc_size(2), warn_unused_result));

/** Frees the block at p; null does nothing. Does not change errno. */
void hakmem_free(void *p);

/** hakmem_realloc(p, count * size). If the product overflows, it returns null with ENOMEM and
 * leaves the block unchanged. */
void *hakmem_reallocarray(void *p, size_t count, size_t size)
    __attribute__((alloc_size(2, 3), warn_unused_result));

/** C23: frees a block of malloc, calloc or realloc that was requested with n bytes; null does
 * nothing. The block is freed even if n is wrong. Does not change errno. */
void hakmem_free_sized(void *p, size_t n);

/** C23: as hakmem_free_sized, for a block of aligned_alloc(align, n). */
void hakmem_free_aligned_sized(void *p, size_t align, size_t n);

/** Returns a block of at least n bytes at a multiple of `align`. If `align` is not a power of two,
 * returns null with EINVAL. n need not be a multiple of `align`. */
void *hakmem_aligned_alloc(size_t align, size_t n)
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/** As hakmem_aligned_alloc, but an alignment that is not a power of two is rounded up to one. */
void *hakmem_memalign(size_t align, size_t n)
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/** As hakmem_aligned_alloc, but stores the block in *result. Returns 0; EINVAL if `align` is not a
 * power of two or not a multiple of sizeof(void *); or ENOMEM, which errno has then too. On an
 * error *result does not change. */
int hakmem_posix_memalign(void **result, size_t align, size_t n)
    __attribute__((warn_unused_result));

/** hakmem_aligned_alloc with the page size as alignment. */
void *hakmem_valloc(size_t n) __attribute__((malloc, alloc_size(1), warn_unused_result));

/** As hakmem_valloc, with n rounded up to whole pages, at least one. */
void *hakmem_pvalloc(size_t n) __attribute__((malloc, warn_unused_result));

/** Returns how many bytes the program may use at p, at least as many as it requested; realloc
 * preserves all of them. 0 for null. */
size_t hakmem_malloc_usable_size(const void *p);

/** Returns how many bytes the program may use from p on: to the end of the block that p is in, 0 at
 * that end. p may be any address; SIZE_MAX if it is not in hakmem's memory. 0 for null, and for a
 * block of 0 bytes in a hardened heap. An address in hakmem's memory that is in no allocated block
 * is a heap error. hardened_malloc has this function as malloc_object_size, and so has hakmem where
 * it replaces malloc. */
size_t hakmem_object_size(const void *p);

/* ---- glibc's extensions, about hakmem's memory ---- */

/** Returns free memory to the kernel, as hakmem_purge, but up to `pad` bytes of free slices may
 * keep their pages. `pad` is rounded down to 64 KiB. Returns 1 if memory went back, otherwise 0. */
int hakmem_malloc_trim(size_t pad);

/** Members, order and types as in glibc's struct mallinfo2; bytes and counts. */
struct hakmem_mallinfo2 {
    size_t arena;    /**< bytes in superslabs and kept mappings: uordblks + fordblks */
    size_t ordblks;  /**< free blocks in slabs */
    size_t smblks;   /**< free blocks in thread caches and transfer caches */
    size_t hblks;    /**< huge blocks: each is a mapping (above 2 MiB) */
    size_t hblkhd;   /**< bytes of these mappings */
    size_t usmblks;  /**< 0 */
    size_t fsmblks;  /**< bytes of the blocks that smblks counts */
    size_t uordblks; /**< bytes in used blocks, without those of hblks */
    size_t fordblks; /**< bytes of arena that are not in used blocks */
    size_t keepcost; /**< bytes that malloc_trim(0) can give back at once */
};

/** The members of hakmem_mallinfo2 as int; a value above INT_MAX becomes INT_MAX. */
struct hakmem_mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

/** Return what memory is used for now. They hold all of the allocator's locks meanwhile. */
struct hakmem_mallinfo2 hakmem_mallinfo2(void);
struct hakmem_mallinfo hakmem_mallinfo(void);

/** Writes statistics as XML to a stream, in glibc's format (version 1) with an additional element
 * `hakmem`. Returns 0. If `options` is not 0, writes nothing and returns EINVAL. */
int hakmem_malloc_info(int options, FILE *stream);

/** Writes a summary of the statistics to standard error, without stdio. */
void hakmem_malloc_stats(void);

/** Sets a parameter of the process by glibc's M_ number. It is best called before there are
 * threads. Returns 1 if the setting takes effect or concerns something that hakmem does not have, 0
 * if hakmem can't do it or does not know the parameter.
 *
 *   M_TRIM_THRESHOLD  the option keep_bytes: so many bytes of free memory stay. Negative: all
 *   M_ARENA_MAX       threads that start from now on share so many shards (independent parts of the
 *                     heap), at least 1
 *   M_MXFAST, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_TEST
 *                     no effect; returns 1 for the values that glibc accepts
 *   M_CHECK_ACTION    returns 1 for values that end the program on misuse, as hakmem does
 *   M_PERTURB         returns 1 for 0, which fills no blocks, as hakmem does */
int hakmem_mallopt(int parameter, int value);

/* ---- functions that only hakmem has ---- */

/** Stores the current value of an option in *value. `name` is a name in docs/options.md
 * ("stack_bytes"), in upper or lower case. Sizes are in bytes, switches 0 or 1; `stats` is 0 (off)
 * or 1 (exit), a path 1 if it is set, otherwise 0; HAKMEM_AUTO stands for `auto`. Returns 0. If
 * there is no such option or `name` is null, returns ENOENT and leaves *value unchanged. Options
 * are read once, at the process's first call; hakmem_option_set and `hakmem set` change some of
 * them. Does not change errno. */
#define HAKMEM_AUTO UINT64_MAX
int hakmem_option(const char *name, uint64_t *value);

/** Changes an option while the program runs: thread_bytes, keep_bytes,
 * soft_limit_bytes, hard_limit_bytes, report_no_memory, check_frees, abort_on_misuse, compact,
 * guards_a_second, profile, profile_rss, profile_rate or profile_samples. Memory beyond a new limit
 * goes back to the kernel in this call. Returns 0; ENOENT if there is no such option or `name` is
 * null; EINVAL if the value is out of bounds; EPERM for an option that can only be set when a
 * process starts; EAGAIN if a profile can't be turned on or off now (see hakmem_profile_start).
 * Does not change errno. Threads may call it at once. Since 0.1. */
int hakmem_option_set(const char *name, uint64_t value);

/** Returns how many bytes a block of malloc(n) has, which is what malloc_usable_size returns for
 * it; 0 if n is more than malloc can give. While guards_a_second is not 0, a guarded block has n
 * bytes and no more. Since 0.1. */
size_t hakmem_good_size(size_t n);

/** Returns the memory of free blocks to the kernel, as far as possible: blocks in the calling
 * thread's cache and in transfer caches, but not in other threads' caches; free pages in slabs;
 * free slices; kept mappings. Returns how many bytes went back that may have held pages. Since 0.1.
 */
size_t hakmem_purge(void);

/** Sets the function that is called when the heap passes the option soft_limit_bytes; null for
 * none. It is called once each time: after free memory has gone back to the kernel, if the heap is
 * still larger, and again only after the heap was a sixteenth smaller than the limit. It is called
 * in a call of malloc, free, hakmem_option_set or a related function, by the thread that made it.
 * It may allocate, free, purge and change the limits. It must not take a lock that a thread may
 * hold while it allocates or frees, and should take little time: setting a flag, say, so that the
 * program drops caches later. errno is put back after it. Threads may call hakmem_on_soft_limit at
 * once. Since 0.1. */
typedef void (*hakmem_soft_limit_called)(void *argument);
void hakmem_on_soft_limit(hakmem_soft_limit_called called, void *argument);

/* ---- for programs that can move their blocks ----
 *
 * After most blocks were freed here and there, nearly every page still holds one, and nothing can
 * go back. A program that knows every pointer to its blocks can move them together:
 *
 *     if (hakmem_defrag_hint(p)) {
 *         void *q = hakmem_defrag_malloc(n);
 *         if (q != NULL) {
 *             memcpy(q, p, n);
 *             ... every pointer to p becomes q ...
 *             hakmem_defrag_free(p);
 *         }
 *     }
 *
 * over all of its blocks, some at a time, until hakmem_defrag_hint returns 0 for nearly all. Moved
 * blocks fill the lowest places, and pages that become empty go back as they do after any free.
 * Blocks of these and of the other functions are the same: any may free or reallocate any. */

/** Returns 1 if the block at p is worth moving: hakmem_defrag_malloc, if this thread calls it next,
 * places it lower, and the slab that the block leaves can so become empty. Otherwise 0, also if p
 * is null or a block above 32 KiB, which has pages of its own. A pointer that is not a block is
 * reported as for malloc_usable_size. Does not change errno. Since 0.1. */
int hakmem_defrag_hint(const void *p);

/** As hakmem_malloc, but up to 32 KiB not from the thread's cache: at the lowest free place of this
 * size in the part of the heap that the block of the last hint is in, or else in the thread's.
 * Slower: takes locks. Since 0.1. */
void *hakmem_defrag_malloc(size_t n) __attribute__((malloc, alloc_size(1), warn_unused_result));

/** As hakmem_free, but a block of up to 32 KiB goes back to its slab at once, so that the next
 * malloc of this thread does not hand it out again. Slower: takes locks. Since 0.1. */
void hakmem_defrag_free(void *p);

/** Returns how many bytes moving could give back: those of slabs that would be empty if their
 * blocks filled free places of others, but for pages that were given back already. If it is 0,
 * hakmem_defrag_hint returns 0 for nearly all blocks. Blocks in threads' caches count as used. It
 * is soon done, also in a large heap. Since 0.1. */
size_t hakmem_defrag_gain(void);

/** What all memory is used for at one moment, in bytes, and some counts. The ten members from
 * `program` to `map` add up to `mapped`. Later versions add members at the end. */
struct hakmem_stats {
    size_t mapped;            /**< bytes mapped from the kernel, touched or not */
    size_t program;           /**< in used blocks */
    size_t thread_caches;     /**< in free blocks in threads' caches */
    size_t transfer;          /**< in free blocks in transfer caches */
    size_t free_in_slabs;     /**< in free blocks of slabs in use */
    size_t rest;              /**< after a slab's last block and after a large block's end */
    size_t retained;          /**< in free slices that may hold pages */
    size_t untouched;         /**< in free slices that hold none */
    size_t kept;              /**< in mappings of freed huge blocks, kept for the next */
    size_t metadata;          /**< in the allocator's own structures */
    size_t map;               /**< in the address map */
    size_t mapped_most;       /**< the most that `mapped` has been */
    size_t superslabs;        /**< regions of 4 MiB */
    size_t slabs;             /**< runs of slices that hold blocks of one class */
    size_t large_blocks;      /**< blocks that are runs of slices, up to 2 MiB */
    size_t huge_blocks;       /**< blocks that are mappings, above 2 MiB */
    size_t kept_mappings;     /**< how many mappings `kept` counts */
    size_t threads;           /**< threads that have a cache */
    size_t refills;           /**< of empty stacks, since the start */
    size_t flushes;           /**< of full stacks, since the start */
    size_t returned;          /**< bytes given back to the kernel, since the start */
    size_t taken_again;       /**< of those, bytes that were taken again since */
    size_t returning_ns;      /**< nanoseconds spent on giving back, since the start */
    size_t compactions;       /**< times a size class began to compact, since the start */
    size_t compacted;         /**< bytes of blocks that went back to slabs at once for that */
    size_t regained;          /**< bytes of such slabs that became empty, or of their pages */
    size_t returned_in_slabs; /**< bytes of pages of slabs in use that are given back now */
    size_t held;              /**< in slices and huge blocks, in use or kept: what limits count */
    size_t container_limit;   /**< the lowest memory limit of its container; 0: none, or not read */
};

/** Fills in the first `size` bytes of *stats. `size` is sizeof *stats as the caller was compiled
 * with it; members that this library does not know become 0. Returns how many bytes the library
 * knows. Holds all of the allocator's locks meanwhile. Since 0.1. */
size_t hakmem_stats(struct hakmem_stats *stats, size_t size);

/** The formats of hakmem_sheet. */
#define HAKMEM_SHEET_TEXT 0        /**< a table for people, as `hakmem sheet` shows it */
#define HAKMEM_SHEET_OPENMETRICS 1 /**< text for Prometheus; docs/watch.md has the metrics */

/** Writes what the resident memory of this process is used for to a file descriptor: all of it, the
 * heap's and what is not the heap's, so that it adds up to the kernel's figure. Takes no lock,
 * allocates nothing from the heap and is async-signal-safe; takes a few milliseconds for each 100
 * MiB. Returns 0, EINVAL for an unknown format, the error of /proc where that is not there or not
 * readable (as in a process that is not dumpable), EAGAIN if the heap changed too fast, ENOMEM,
 * ENOTSUP where pages are not of 4 KiB, or the error of the descriptor (EPIPE without SIGPIPE).
 * Since 0.1. */
int hakmem_sheet(int fd, int format);

/** Marks this moment of the program's life by a name, such as "loaded": of the first 64 names it is
 * counted how often and noted when. `hakmem trace` shows marks on the curve of memory and takes
 * them as moments, heap profiles list them, and `hakmem exporter` counts them. `hakmem mark` does
 * the same from outside. The name is copied; its first 39 bytes count. Null or an empty name does
 * nothing, nor does a call while another thread forks. Takes about as long as a malloc that takes a
 * lock, and allocates nothing. Does not change errno. Not async-signal-safe. Since 0.1. */
void hakmem_mark(const char *name);

/** Starts or stops the heap profile, as the option `profile` does: while it is on, one block in
 * many is sampled, with the call stack that allocated it. A block that was sampled stays in the
 * profile until it is freed, also after the profile was stopped. hakmem_profile_start also lets the
 * peak and the count of allocations that hakmem_profile_write writes begin anew, so a program can
 * measure a part of itself; it may be called while the profile is on. Returns 0; EAGAIN where there
 * is no memory for it, the kernel's pages are larger than 4 KiB, or another thread is forking.
 * Since 0.1. */
int hakmem_profile_start(void);
int hakmem_profile_stop(void);

/** Writes the heap profile to a descriptor, in the text format of gperftools and jemalloc, which
 * pprof, jeprof and `hakmem profile` read: for each call stack the blocks and bytes in use, and
 * those allocated while the profile was on. The second line ends with `most N allocated N`: the
 * most bytes in use at once and the blocks allocated since hakmem_profile_start, or without a call
 * of it since the process began or was forked. With the option profile_rate=1 both are exact. All
 * are estimates of the program's blocks, not counts of samples. Async-signal-safe. Returns 0, EBUSY
 * while another thread writes it, or what writing ended with, as an errno. Since 0.1. */
int hakmem_profile_write(int fd);

/** As hakmem_malloc, hakmem_calloc, hakmem_realloc and hakmem_aligned_alloc, with the same results
 * and errors, for a call to which the program gives a name. In a heap profile, `site` is shown as
 * the function that allocated the block, before its callers, and blocks of different names are
 * counted apart. A name is a string that ends with a zero, such as a constant; 200 bytes of it are
 * shown. If it is null or empty, the call has no name. The string is read, and copied, only when a
 * block is sampled; without a profile, a name costs nothing. A block that hakmem_realloc_at leaves
 * where it is keeps its former name. Blocks are as others: any function may free or reallocate
 * them. Since 0.1. */
void *hakmem_malloc_at(size_t n, const char *site)
    __attribute__((malloc, alloc_size(1), warn_unused_result));
void *hakmem_calloc_at(size_t count, size_t size, const char *site)
    __attribute__((malloc, alloc_size(1, 2), warn_unused_result));
void *hakmem_realloc_at(void *p, size_t n, const char *site)
    __attribute__((alloc_size(2), warn_unused_result));
void *hakmem_aligned_alloc_at(size_t align, size_t n, const char *site)
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/** Returns the library's version, as a number like HAKMEM_VERSION. Since 0.1. */
unsigned hakmem_version(void);

/** Turns on or off that every free is checked at once. It costs most of the speed. While it is on,
 * the wrong call itself reports a double free with other frees in between, or a pointer into a
 * block; otherwise that can happen when the block leaves the thread's cache. The option
 * `check_frees` turns it on from the start. Returns the previous setting. A thread that is in the
 * middle of a call finishes it as before. On processors other than x86, another thread may notice
 * some calls later. What other threads hold free becomes
 * checked with their next call. Since 0.1. */
int hakmem_check_frees(int on);

/** Walks the heap, checks that all structures agree, and reports each error in one line on
 * standard error. Returns 0 if there is none, otherwise how many rules are broken. Returns -1 with
 * ENOMEM if there is no memory for the walk (about 1/128 of what is mapped). Other threads wait at
 * their next refill or flush until the walk is over. Only the bounds of what they change without a
 * lock are checked, so the check is best in a process of one thread. Since 0.1. */
long hakmem_check(void);

#ifdef __cplusplus
}
#endif

#endif
