/* What the process writes of itself: its sheet and its heap profile, as text. The sheet is read as
 * from outside: no lock is taken and nothing is allocated from the heap, so it can be made at any
 * time, in a signal handler, too, or while another thread holds the heap's locks. */
#ifndef HAKMEM_SHEET_OWN_H
#define HAKMEM_SHEET_OWN_H

#include "sheet/heap.h"

/* For people, or for Prometheus. */
enum form { FORM_TEXT, FORM_OPENMETRICS };

/* What failed. */
enum own_step { OWN_READ, OWN_WRITE };

struct own_error {
    int number; /* 0: nothing */
    enum own_step step;
};

/* Writes it to a descriptor. What reading can end with: the errors of /proc, which may not be there
 * or be protected; EAGAIN where the heap changed too fast; ENOMEM; ENOTSUP where pages are not of 4
 * KiB. A pipe that nobody reads is an error, and no signal. */
struct own_error sheet_write_own(int file, enum form form);

/* Writes it to a file of this name, which is there in whole or not at all. One thread at a time. */
struct own_error sheet_replace_own(const char *path, enum form form);

/* Writes the heap profile (profile.h) to a descriptor; 0 or an errno; EBUSY while another
 * thread does so. Async-signal-safe. */
int profile_write(int file);

/* The same to a file that is there in whole or not at all. */
int profile_replace(const char *path);

#endif
