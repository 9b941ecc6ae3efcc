/* One set of names for the allocator under test, for tests/stress and tests/api.
 *
 * Normally these are malloc and its family, from any library (linked or preloaded).
 * With STRESS_HAKMEM_NAMES they are hakmem_malloc and its family, for builds in which a sanitizer
 * keeps malloc for itself.
 *
 * The calls go through volatile pointers: a compiler may neither drop a pair of malloc and free nor
 * conclude anything from what the standard says about them (trap 17). */
#ifndef HAKMEM_TESTS_NAMES_H
#define HAKMEM_TESTS_NAMES_H

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef STRESS_HAKMEM_NAMES
#include <hakmem/hakmem.h>
#define NAME_UNDER_TEST(name) hakmem_##name
#define USABLE_SIZE_TAKES const void *
#else
#define NAME_UNDER_TEST(name) name
#define USABLE_SIZE_TAKES void *
#endif

#define UNDER_TEST static __attribute__((unused))

UNDER_TEST void *(*volatile do_malloc)(size_t) = NAME_UNDER_TEST(malloc);
UNDER_TEST void *(*volatile do_calloc)(size_t, size_t) = NAME_UNDER_TEST(calloc);
UNDER_TEST void *(*volatile do_realloc)(void *, size_t) = NAME_UNDER_TEST(realloc);
UNDER_TEST void (*volatile do_free)(void *) = NAME_UNDER_TEST(free);
UNDER_TEST void *(*volatile do_aligned_alloc)(size_t, size_t) = NAME_UNDER_TEST(aligned_alloc);
UNDER_TEST int (*volatile do_posix_memalign)(void **, size_t,
                                             size_t) = NAME_UNDER_TEST(posix_memalign);
UNDER_TEST void *(*volatile do_memalign)(size_t, size_t) = NAME_UNDER_TEST(memalign);
UNDER_TEST
size_t (*volatile do_usable_size)(USABLE_SIZE_TAKES) = NAME_UNDER_TEST(malloc_usable_size);

#endif
