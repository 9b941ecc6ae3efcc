/* What the kernel says of a process: its memory, what is mapped, and which pages are there. By
 * plain system calls: the process may be the own one, in the middle of a call of stdio. */
#ifndef HAKMEM_SHEET_KERNEL_H
#define HAKMEM_SHEET_KERNEL_H

#include "sheet/target.h"

/* `process` is a PID, or "self". Opens its memory; 0, or the number of an error. */
int kernel_open(struct target *t, const char *process);
void kernel_close(struct target *t);

/* Forgets what is known and reads what is mapped. 0; EINVAL where a line is not understood; or the
 * number of another error. There is no mapping where a process has ended. */
int kernel_maps(struct target *t, const char *process);

/* What a file of /proc says after the word, such as "Rss:", in bytes; 0 where it does not. */
uint64_t kernel_bytes(const char *process, const char *file, const char *word);

#endif
