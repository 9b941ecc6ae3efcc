/* The process's system calls, seen by the test before the kernel has them, whoever makes them: what
 * the library asks is not libc's functions. */
#ifndef HAKMEM_TESTS_SEEN_H
#define HAKMEM_TESTS_SEEN_H

/* From now on, in this process and its children, `see` is called in the place of each of these
 * calls (the last number is -1), and its result is the call's: as the kernel's, an error is its
 * negative number. `see` makes the call by libc's syscall(), whose calls are not seen; everything
 * else in it is async-signal-safe. Ends the test where the kernel has no filters. A thread that
 * blocks SIGSYS is ended by such a call. */
void calls_see(long (*see)(long number, const long *arguments), const long *numbers);

/* What a call by syscall() returned, as the kernel said it. */
long kernel_said(long result);

#endif
