/* Prints what was learned last, and why. */
#ifndef HAKMEM_REPORT_LEARNED_H
#define HAKMEM_REPORT_LEARNED_H

/* Writes the journal to standard error, a line each, the oldest first. Allocates nothing. */
void learned_print(void);

#endif
