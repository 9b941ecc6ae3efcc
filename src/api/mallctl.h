/* jemalloc's mallctl: figures, settings and orders by names. mallctl.def has the table. */
#ifndef HAKMEM_API_MALLCTL_H
#define HAKMEM_API_MALLCTL_H

#include <stddef.h>

int mallctl(const char *name, void *old, size_t *old_bytes, const void *new, size_t new_bytes);
int mallctlnametomib(const char *name, size_t *mib, size_t *length);
int mallctlbymib(const size_t *mib, size_t length, void *old, size_t *old_bytes, const void *new,
                 size_t new_bytes);
void malloc_stats_print(void (*write)(void *, const char *), void *to, const char *options);

#endif
