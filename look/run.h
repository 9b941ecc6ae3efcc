/* Runs a program of which each process is searched for leaks at its end. */
#ifndef HAKMEM_LOOK_RUN_H
#define HAKMEM_LOOK_RUN_H

/* The words are what to preload, the status that tells of leaks or "-", the file to write or "-",
 * the reporter, "--", and the program. Returns the exit status. */
int run_leaks(char **words);

#endif
