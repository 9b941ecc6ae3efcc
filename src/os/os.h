/* The kernel, and nothing else. Every function preserves errno, never allocates through malloc, and
 * may be called before any constructor has run. Those that call a function of libc's, which another
 * library may have replaced by one that allocates, say so: no lock is held there. Lengths are in
 * bytes; addresses and lengths that are passed in are multiples of the page size.
 *
 * A filter of system calls may end the program for a call that it does not know. So after the start
 * only the calls in docs/contract.md ("System calls") are made, which glibc makes too. Functions
 * that make other calls say so. */
#ifndef HAKMEM_OS_OS_H
#define HAKMEM_OS_OS_H

#include <errno.h>
#include <signal.h>

#include "base/defs.h"

/* Bytes of a page. Known after os_start; a power of two from 4 KiB to 64 KiB. */
extern size_t os_page;

/* What the kernel gave the process when it began. */
struct os_given {
    size_t page;         /* bytes of a page */
    bool secure;         /* it has more privileges than who started it */
    uintptr_t random;    /* the address of 16 random bytes, or 0 */
    uintptr_t functions; /* the address of the kernel's own functions, or 0 */
};

/* Asks libc for it, whose function may be replaced by one that allocates: so no lock is held here.
 * Where it is being asked already, as by a call that came to this one, the kernel is. */
struct os_given os_ask(void);

/* Calls no function of libc's. */
void os_start(const struct os_given *given);

/* Zeroed memory, readable and writable, committed as it is touched; null when there is none. */
void *os_map(size_t length);

/* As os_map, at a multiple of `align`, a power of two of at least a page. */
void *os_map_aligned(size_t length, size_t align);

/* As os_map, at exactly this address. If something else is there, null, and `*occupied` is set. */
void *os_map_at(uintptr_t address, size_t length, bool *occupied);

/* As os_map, between two inaccessible pages, which are not part of the length. */
void *os_map_guarded(size_t length);

/* As os_map_guarded, for a block that may grow: of `length` bytes at a multiple of `align`, the
 * first `usable` can be touched. The mapping begins `*before` bytes in front and has `*mapped` in
 * all. */
void *os_map_block(size_t length, size_t usable, size_t align, size_t *before, size_t *mapped);

/* Nobody can touch the pages until os_let_write; false when the kernel refuses. */
bool os_forbid(void *start, size_t length);

/* Lets pages be written, or only be read; false when the kernel refuses. */
bool os_let_write(void *start, size_t length, bool may);

/* False when the kernel refuses (as it may at its limit of mappings): the memory is still there. */
bool os_unmap(void *start, size_t length);

/* Grows or shrinks a mapping where it stands; false when that can't be. Then `*pieces` tells
 * whether the kernel sees several mappings there, which it can neither resize nor move. */
bool os_resize(void *start, size_t old_length, size_t new_length, bool *pieces);

/* Grows a mapping, with its pages, wherever there is room: its new start. Null when that can't be:
 * then it is as it was. */
void *os_move(void *start, size_t old_length, size_t new_length);

/* Gives the pages back; they read as zero when touched again. False when the kernel refuses: then
 * what was in them may be there or not. Nobody else may touch them meanwhile. */
bool os_purge(void *start, size_t length);

struct os_run {
    void *start;
    size_t length;
};

/* As os_purge, for many runs. If policy.extra_calls is set and the kernel takes many runs at once
 * (Linux 6.13, and faster since 6.16), this costs a fraction of as many calls. The length of a run
 * that the kernel refuses becomes 0. */
void os_purge_runs(struct os_run *runs, size_t n);

/* Whether the kernel has os_guard; a call or three. */
bool os_can_guard(void);

/* Nobody can touch these pages from now on; what they held is lost. Unlike os_forbid this needs no
 * mapping of its own (Linux 6.13), and lasts until os_unguard. False when the kernel refuses some.
 */
bool os_guard_runs(struct os_run *runs, size_t n);

/* Whoever may touch the rest of the mapping may touch these pages again; they hold zeroes where
 * they could not be touched. False when the kernel refuses. */
bool os_unguard(void *start, size_t length);

/* Brings in fresh pages that are about to be written, with one call instead of a fault for each. */
void os_bring_in(void *start, size_t length);

/* Lets the kernel use huge pages in a region; false if it is set never to. */
bool os_huge_pages(void *start, size_t length);

/* Keeps huge pages out of a region: no call where the system gives none unasked, unless
 * os_huge_pages was called for it (`asked`). */
void os_small_pages(void *start, size_t length, bool asked);

/* Bytes mapped by the calls above and not unmapped since. */
size_t os_mapped(void);

/* Whether the 8 bytes at p can be read, by a call that locks make, too. Async-signal-safe. */
bool os_readable(const void *p);

/* The most that os_mapped has been. */
size_t os_mapped_most(void);

/* Names a region in /proc/PID/maps where policy.extra_calls is set and the kernel can; `name` lives
 * as long as the mapping. */
void os_name(void *start, size_t length, const char *name);

/* A number that an attacker can't guess, as far as the kernel has one. At start alone. */
uint64_t os_random(void);

/* CPUs that the calling thread may run on, or those that asked before; at least 1. One thread at a
 * time asks. */
unsigned os_cpus(void);

/* Whether the process certainly has one thread. */
bool os_single_threaded(void);

/* Names the calling thread, at most 15 bytes, where policy.extra_calls is set. */
void os_thread_name(const char *name);

/* The calling thread's name, or an empty one. */
void os_thread_named(char name[16]);

/* Milliseconds since some moment, coarse and cheap; 0 for ever where there is no clock. */
size_t os_milliseconds(void);

/* Milliseconds of processor time of the process; a system call. 0 where it may not ask. */
size_t os_worked_milliseconds(void);

/* Nanoseconds of the same clock as os_milliseconds, exact and dearer. */
size_t os_nanoseconds(void);

/* For os_start: where the kernel has put its functions (AT_SYSINFO_EHDR), or 0; before that each
 * look at the clock is a call. */
void clock_start(uintptr_t functions);

/* Sleeps while *word is `value`, until somebody wakes it, or for so long (0: for ever), or for no
 * reason. */
void os_wait(int *word, int value, size_t milliseconds);
void os_wake(int *word);

/* Has libc call these around every fork, until the process's end. Libc may allocate. */
void os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* Has libc call this when the process ends by exit. Libc may allocate. */
void os_at_end(void (*end)(void));

/* Has libc call this when the calling thread ends, with its variables: in a thread that calls exit,
 * or returns from main, before exit calls any function. Where this libc can. Libc may allocate. */
void os_at_thread_end(void (*end)(void *));

/* The kernel's number for this thread. */
unsigned os_thread_id(void);

/* Writes all of it to standard error, as far as that goes. */
void os_print_error(const char *words, size_t length);

/* Bytes of addresses that the process may have, by its limits; SIZE_MAX where there is none. */
size_t os_address_space(void);

/* A file for reading, never waiting for it to become one that can be read. -1 on failure; then
 * `*error` says why by its number, else it is 0. */
int os_open(const char *path, int *error);

/* The next bytes of it, at most `room`; 0 at its end or on failure, told apart as above. */
size_t os_read(int file, void *buffer, size_t room, int *error);

void os_close(int file);

/* What a small file has, at most `room` bytes: how many, 0 also where it can't be read. `*error`
 * says why it can't be opened, else it is 0. */
static inline size_t os_read_file(const char *path, void *to, size_t room, int *error)
{
    int ignored;
    size_t length = 0;
    int file = os_open(path, error);
    for (size_t got = 1; file >= 0 && got > 0 && length < room; length += got)
        got = os_read(file, (char *)to + length, room - length, &ignored);
    if (file >= 0)
        os_close(file);
    return length;
}

/* Makes a file of so many zeroes that is in memory, shared with whoever else maps it, after there
 * is room for all of it on its disk; at addresses where it can grow to `most`. Null on failure,
 * also where such a file is there; then `*error` says why by its number. It makes calls of its own:
 * openat to write, fallocate, mmap of a file. */
void *os_map_new_file(const char *path, size_t length, size_t most, int *error);

/* Makes room for so many bytes of such a file: 0 or an errno. Calls openat to write, and
 * fallocate. */
int os_grow_file(const char *path, size_t length);

/* Puts memory of this process's own in place of the first `length` bytes, where there is any: these
 * addresses stay valid, unlike those from there up to `most`. */
void os_leave_file(void *start, size_t length, size_t most);

/* Whether the program has more privileges than who started it, who must not steer it. */
bool os_secure(void);

/* Lets processes of the same user read and debug this one. A child of a fork has to call it anew.
 */
void os_let_watch(void);

/* The program's environment; null before libc knows it. */
char **os_environment(void);

/* ---- of this process, for reports ----
 *
 * What a process can find out about itself, and how it ends. All of this is also async-signal-safe,
 * takes no lock of libc, and is no cancellation point. */

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
__attribute__((noreturn)) void os_abort(void);

/* Ends the process by SIGABRT without calling a handler. */
__attribute__((noreturn)) void os_die(void);

/* ---- functions that leave errno as it was ---- */

static inline void errno_put_back(const int *before) { errno = *before; }

/* At the end of the block errno is what it is here. */
#define KEEP_ERRNO __attribute__((cleanup(errno_put_back), unused)) int errno_before = errno

#endif
