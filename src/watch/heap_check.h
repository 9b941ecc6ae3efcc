/* Checks the heap against CHECK_RULES (accounts.h). */
#ifndef HAKMEM_WATCH_HEAP_CHECK_H
#define HAKMEM_WATCH_HEAP_CHECK_H

#include "watch/accounts.h"

/* Accounts, then checks each rule. The caller holds all locks; blocks may be on their way between
 * the program and the slow path, unless no other thread is at work (`quiet`). Returns how many
 * breaches there are, SIZE_MAX without memory for the notes. Neither calls malloc nor prints. */
size_t heap_check(struct accounts *accounts, bool quiet);

/* Writes the breaches to standard error, a line each. Needs no lock. */
void heap_check_report(const struct accounts *accounts);

#endif
