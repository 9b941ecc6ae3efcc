/* Runs a program with the library preloaded, and looks at each process at its end if that is
 * wanted. */
#ifndef HAKMEM_LOOK_RUN_H
#define HAKMEM_LOOK_RUN_H

/* The words are what to preload; a file for heap profiles; the status that tells of leaks, or "no"
 * where none are searched for; a file for leaks; budgets (budgets.h); the reporter; "--"; and the
 * program. Each may be
 * "-", and the reporter none. Returns the exit status. */
int run(char **words);

#endif
