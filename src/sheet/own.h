/* The sheet of the process itself, as text. Read as from outside: no lock is taken and nothing is
 * allocated from the heap, so it can be made at any time, in a signal handler, too, or while
 * another thread holds the heap's locks. */
#ifndef HAKMEM_SHEET_OWN_H
#define HAKMEM_SHEET_OWN_H

#include "sheet/print.h"

/* Writes it to a descriptor. 0, or the number of an error: of /proc, which may not be there or be
 * protected; of the descriptor; ENOMEM; ENOTSUP where pages are not of 4 KiB. */
int sheet_write_own(int file, enum form form);

/* Writes it to a file of this name, which is there in whole or not at all. */
int sheet_replace_own(const char *path, enum form form);

#endif
