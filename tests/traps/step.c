/* A signal at every instruction (x86-64's trap flag): between a program's instructions outside of
 * the allocator the handler allocates and frees; inside of it the handler forks, by which the child
 * leaves, executes a program, or returns into the interrupted call and goes on; it spawns, and it
 * takes children by vfork; and it calls exit. The process has one thread (the others: signals.c).
 */
#include "trap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <regex.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
int main(void) { return 77; }
#else

#define TRAP_FLAG 0x100
#define SLOTS 64

extern char **environ;
static char *const arguments[] = {"step", "--nothing", NULL};

static void (*at_step)(bool inside); /* null: stepping ends */
static unsigned long steps_inside, steps_outside;
static volatile bool child_goes_on; /* set in a child that returned from the handler */

/* ---- which instructions are the allocator's ---- */

static uintptr_t library_start, library_end;
static uintptr_t return_address, return_stack; /* of the call that is under way; 0 without */

static int find_code(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    if (info->dlpi_addr != (uintptr_t)base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X))
            continue;
        library_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        library_end = library_start + info->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

static void find_library(void)
{
    Dl_info where;
    if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &where) != 0)
        dl_iterate_phdr(find_code, where.dli_fbase);
    if (library_start == 0)
        fail("step: the code of the allocator was not found");
}

/* From a call's first instruction to its return, with all that it calls itself. */
static bool is_inside(const greg_t *registers)
{
    uintptr_t at = (uintptr_t)registers[REG_RIP], stack = (uintptr_t)registers[REG_RSP];
    if (return_address == 0 && at >= library_start && at < library_end) {
        return_address = *(uintptr_t *)stack;
        return_stack = stack + sizeof(uintptr_t);
    } else if (at == return_address && stack == return_stack) {
        return_address = 0;
    }
    return return_address != 0;
}

static void on_step(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    int saved = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (at_step == NULL) {
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    } else {
        registers[REG_EFL] |= TRAP_FLAG;
        bool inside = is_inside(registers);
        inside ? steps_inside++ : steps_outside++;
        at_step(inside);
    }
    if (child_goes_on)
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    errno = saved;
}

static void step_through(void (*work)(void), void (*what)(bool inside))
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    steps_inside = steps_outside = 0;
    at_step = what;
    raise(SIGTRAP);
    work();
    at_step = NULL;
    raise(SIGTRAP);
}

/* ---- outside: the handler allocates ---- */

static struct {
    void *block;
    size_t size;
} held[SLOTS];

static void allocate(bool inside)
{
    if (inside)
        return;
    unsigned step = (unsigned)steps_outside, i = step % SLOTS;
    if (held[i].block != NULL)
        CHECK_PATTERN(held[i].block, held[i].size, i);
    do_free(held[i].block);
    held[i].size = mix64(step) % (step % 1000 == 0 ? 300000 : 200);
    held[i].block = NEED("malloc in a handler", do_malloc(held[i].size));
    pattern_fill(held[i].block, held[i].size, i);
}

static int compare(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }

/* What libc does with memory, its locks and its state included. */
static void use_libc(void)
{
    char *lines[12], *line = NULL, *text = NULL;
    size_t room = 0, n = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && n < 12 && getline(&line, &room, file) > 0)
        lines[n++] = strdup(line);
    if (file != NULL)
        fclose(file);
    qsort(lines, n, sizeof *lines, compare);
    for (size_t i = 0; i < n; i++)
        do_free(lines[i]);
    do_free(line);
    CHECK(asprintf(&text, "%s %d %zu", "text", 12345, n) > 0 &&
              strncmp(text, "text 12345", 10) == 0,
          "asprintf: expected \"text 12345 ...\", found %s", text);
    do_free(text);
    regex_t pattern;
    if (CHECK(regcomp(&pattern, "a(b|c)*d", REG_EXTENDED) == 0, "regcomp failed")) {
        CHECK(regexec(&pattern, "abcbd", 0, NULL, 0) == 0, "regexec: expected a match");
        regfree(&pattern);
    }
    setenv("TRAP_STEP", "1", 1);
    unsetenv("TRAP_STEP");
    dlsym(RTLD_DEFAULT, "there_is_no_such_name");
    dlerror();
    DIR *directory = opendir("/");
    while (directory != NULL && readdir(directory) != NULL)
        ;
    if (directory != NULL)
        closedir(directory);
}

TEST(handler_allocates_between_instructions)
{
    step_through(use_libc, allocate);
    for (unsigned i = 0; i < SLOTS; i++) {
        CHECK_PATTERN(held[i].block, held[i].size, i);
        do_free(held[i].block);
    }
    CHECK(steps_outside > 20000 && steps_inside > 1000,
          "instructions stepped: expected 20000 and 1000, found %lu outside, %lu inside",
          steps_outside, steps_inside);
}

/* ---- inside: the handler makes children ---- */

static unsigned stride;
static unsigned long children;

static void await(pid_t child)
{
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0,
          "child %d at instruction %lu: expected status 0, found %#x", (int)child, steps_inside,
          (unsigned)status);
}

static void make_child(bool inside)
{
    if (!inside || child_goes_on || steps_inside % stride != 0)
        return;
    pid_t child = -1;
    switch (children++ % 8) {
    case 0:
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0)
            child = -1;
        break;
    case 1:
        if ((child = vfork()) == 0)
            _exit(0);
        break;
    case 2:
        if ((child = fork()) == 0) {
            execv("/proc/self/exe", arguments);
            _exit(1);
        }
        break;
    case 3:
    case 4:
        if ((child = fork()) == 0) {
            watchdog(300);
            child_goes_on = true;
            return;
        }
        break;
    default:
        if ((child = fork()) == 0)
            _exit(0);
        break;
    }
    await(child);
}

/* In a copy of the process as the handler finds it: `_Fork` runs no handlers of fork. */
static void exit_in_child(bool inside)
{
    if (!inside || steps_inside % stride != 0)
        return;
    pid_t child = _Fork();
    if (child == 0) {
        watchdog(300);
        exit(0);
    }
    children++;
    await(child);
}

/* In the child that came out of the handler with the interrupted call done. */
static void leave_if_child(void)
{
    if (!child_goes_on)
        return;
    use_the_heap(1);
    _exit(!check_all_passed());
}

static void pairs(void)
{
    static const size_t sizes[] = {64, 64, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *p = do_malloc(sizes[i]);
        leave_if_child();
        do_free(p);
        leave_if_child();
    }
}

/* No long copies: each of their steps would be a signal. */
static void every_slow_path(void)
{
    enum { N = 70 };
    static const size_t sizes[] = {24, 3000, 40000, 300000, 3 * MiB};
    static void *blocks[N];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        unsigned n = sizes[k] < 10000 ? N : 5;
        for (unsigned i = 0; i < n; i++) {
            blocks[i] = do_malloc(sizes[k]);
            leave_if_child();
        }
        blocks[0] = do_realloc(blocks[0], sizes[k] + 8);
        leave_if_child();
        for (unsigned i = 0; i < n; i++) {
            do_free(blocks[i]);
            leave_if_child();
        }
    }
    void *p = do_memalign(4096, 100), *q = do_calloc(3, 50);
    leave_if_child();
    do_free(p);
    do_free(q);
    leave_if_child();
}

static void handler_makes_children(void (*work)(void), unsigned every, void (*make)(bool inside))
{
    children = 0;
    stride = every;
    step_through(work, make);
    CHECK(children >= 50, "children: expected at least 50, found %lu of %lu instructions", children,
          steps_inside);
}

TEST(handler_forks_at_every_instruction) { handler_makes_children(pairs, 1, make_child); }

/* A prime, so that all kinds of children meet all places. */
TEST(handler_forks_in_every_slow_path) { handler_makes_children(every_slow_path, 101, make_child); }

enum { CROWD = 4000 };
static void *crowd[CROWD];

/* Slabs are locked outside of the slow path, too: where memory goes back, and where a block is
 * looked for that may be free already, since it bears what a free block bears. */
static void every_lock(void)
{
    volatile size_t *p = do_malloc(500), *q = do_malloc(500);
    do_free((void *)q);
    p[0] = q[0];
    p[1] = q[1];
    do_free((void *)p);
    NAME_UNDER_TEST(malloc_trim)(0);
}

/* What the interrupted call has locked stays locked: the end of the process must not wait for it.
 */
TEST(handler_exits_in_every_slow_path)
{
    handler_makes_children(every_slow_path, 97, exit_in_child);
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = do_malloc(500);
    for (unsigned i = 0; i < CROWD; i++)
        if (i % 10 != 0)
            do_free(crowd[i]);
    handler_makes_children(every_lock, 53, exit_in_child);
    for (unsigned i = 0; i < CROWD; i += 10)
        do_free(crowd[i]);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return 0;
    find_library();
    do_free(do_malloc(64));
    return tests_main("step");
}
#endif
