/* What a process can find out about itself, and how it ends, for reports. As in os.h, errno is
 * preserved and nothing allocates. Everything here is also async-signal-safe, takes no lock of
 * libc, and is no cancellation point. */
#ifndef HAKMEM_OS_SELF_H
#define HAKMEM_OS_SELF_H

#include "base/defs.h"

#include <signal.h>

/* The process's number. */
unsigned os_process(void);

#define OS_THREAD_NAME 16
void os_thread_called(char name[OS_THREAD_NAME]);

/* Whether this process has a thread of that number. */
bool os_thread_lives(unsigned thread);

/* The current folder; false where its path is longer, or there is none. */
bool os_folder(char *path, size_t room);

/* The program's file, cut to `room` with its ending zero; empty when the kernel doesn't tell. */
void os_program_path(char *path, size_t room);

/* Bytes of the process that are resident; 0 or an errno. */
int os_resident(size_t *bytes);

enum os_mapped { OS_MAPPED, OS_NOT_MAPPED, OS_MAPPED_UNKNOWN };

/* The kernel's line on the mapping around p: its rights, and what is mapped. Cut to `room` with its
 * ending zero. Unknown without /proc. */
enum os_mapped os_mapping(const void *p, char *line, size_t room);

void os_let_pass(unsigned milliseconds);

/* Keeps the program's signal handlers out of the calling thread until os_signals_restore. */
void os_signals_block(sigset_t *before);
void os_signals_restore(const sigset_t *before);

/* Runs work(argument); false when it touched memory that isn't there, and so was broken off. One
 * thread at a time; others' faults go to the program's handler meanwhile. */
bool os_try(void (*work)(void *), void *argument);

struct os_fault {
    const void *address, *code; /* touched, and the instruction that did it */
    const char *access;         /* "read", "write", or "access" where the processor does not say */
};

/* From now on `look` is called at each SIGSEGV that an access raised, in the handler; where it
 * returns false the program's own handler is called. False where that can't be set. A handler that
 * the program sets later replaces this, until os_on_fault is called twice and finds the same one:
 * not one that the program sets for a moment. One thread at a time. */
bool os_on_fault(bool (*look)(const struct os_fault *fault));

/* Ends the process as abort() does: SIGABRT, which a handler of the program may see. Unlike abort()
 * it takes no lock, which a child of a fork might find held. */
_Noreturn void os_abort(void);

/* Ends the process by SIGABRT without calling a handler. */
_Noreturn void os_die(void);

#endif
