/* Linux. */
#define _GNU_SOURCE
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "os/calls.h"
#include "os/lock.h"

unsigned os_process(void) { return (unsigned)CALL(SYS_getpid); }

void os_thread_called(char name[OS_THREAD_NAME])
{
    name[0] = '\0';
    CALL(SYS_prctl, PR_GET_NAME, name);
    name[OS_THREAD_NAME - 1] = '\0';
}

bool os_thread_lives(unsigned thread)
{
    return CALL(SYS_tgkill, os_process(), thread, 0) != -ESRCH;
}

bool os_folder(char *path, size_t room)
{
    return CALL(SYS_getcwd, path, room) > 0 && path[0] == '/';
}

void os_program_path(char *path, size_t room)
{
    long length = CALL(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, room - 1);
    path[length > 0 ? length : 0] = '\0';
}

/* Numbers of pages: all that is mapped, and what is resident. Of the calling thread, as the first
 * one, which /proc/self is, may have ended before the others; Linux 3.17 and later have it. */
int os_resident(size_t *bytes)
{
    char text[128];
    int file = call_open("/proc/thread-self/statm", O_RDONLY);
    if (file == -ENOENT)
        file = call_open("/proc/self/statm", O_RDONLY);
    if (file < 0)
        return -file;
    long length = call_read(file, text, sizeof text - 1);
    call_close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *at;
    number_at(text, 10, &at);
    *bytes = number_at(at, 10, &at) * os_page;
    return length < 0 ? (int)-length : 0;
}

/* ---- mappings ---- */

/* Of what follows the addresses in a line its rights and its name. Offset, device and inode in
 * between are of no use in a report. */
#define FIELD_RIGHTS 0
#define FIELD_NAME 4

static void copy_rest(const char *from, char *line, size_t room)
{
    unsigned field = FIELD_RIGHTS;
    size_t used = 0;
    bool space = false;
    for (; *from != '\0'; from++) {
        if (*from == ' ' && (field < FIELD_NAME || space)) {
            field += !space;
            space = true;
            continue;
        }
        if ((field == FIELD_RIGHTS || field == FIELD_NAME) && used + 2 < room) {
            if (space)
                line[used++] = ' ';
            line[used++] = *from;
        }
        space = false;
    }
    line[used] = '\0';
}

COLD enum os_mapped os_mapping(const void *p, char *line, size_t room)
{
    char text[1152];
    struct lines lines = {
        .file = call_open("/proc/self/maps", O_RDONLY), .text = text, .room = sizeof text};
    line[0] = '\0';
    if (lines.file < 0)
        return OS_MAPPED_UNKNOWN;
    enum os_mapped mapped = OS_NOT_MAPPED;
    for (const char *at; mapped == OS_NOT_MAPPED && (at = line_next(&lines)) != NULL;) {
        uintptr_t start = number_at(at, 16, &at);
        uintptr_t end = number_at(at + (*at != '\0'), 16, &at);
        if ((uintptr_t)p - start < end - start) {
            copy_rest(at + (*at != '\0'), line, room);
            mapped = OS_MAPPED;
        }
    }
    call_close(lines.file);
    return mapped;
}

void os_let_pass(unsigned milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    CALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
}

/* ---- signals ---- */

#define SIGNAL_BYTES (_NSIG / 8) /* of the kernel's set of signals */

void os_signals_block(sigset_t *before)
{
    ASSERT(lock_none_held());
    /* What a fault raises can't be put off; os_try takes it. */
    sigset_t most;
    sigfillset(&most);
    sigdelset(&most, SIGSEGV);
    sigdelset(&most, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &most, before);
}

/* Nobody reads our standard error, or a file may not grow: no reason to end the program. */
static void take_back(int number, const sigset_t *before)
{
    sigset_t pending, only;
    const struct timespec no_time = {0, 0};
    sigemptyset(&only);
    sigaddset(&only, number);
    if (!sigismember(before, number) && sigpending(&pending) == 0 && sigismember(&pending, number))
        CALL(SYS_rt_sigtimedwait, &only, NULL, &no_time, SIGNAL_BYTES);
}

void os_signals_restore(const sigset_t *before)
{
    KEEP_ERRNO;
    take_back(SIGPIPE, before);
    take_back(SIGXFSZ, before);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static bool is_sent(const siginfo_t *info) { return info->si_code <= 0; }

/* To the handler that was there before. Without one the access faults again and ends the program;
 * a signal that was sent is sent again. */
static void pass_on(const struct sigaction *program, int number, siginfo_t *info, void *context)
{
    if ((program->sa_flags & SA_SIGINFO) != 0) {
        program->sa_sigaction(number, info, context);
    } else if (program->sa_handler == SIG_DFL ||
               (program->sa_handler == SIG_IGN && !is_sent(info))) {
        sigaction(number, program, NULL);
        if (is_sent(info))
            CALL(SYS_tgkill, os_process(), os_thread_id(), number);
    } else if (program->sa_handler != SIG_IGN) {
        program->sa_handler(number);
    }
}

static const int faults[] = {SIGSEGV, SIGBUS};
static struct sigaction program_actions[2]; /* the thread in os_try */
static unsigned trying;                     /* atomic: the thread in os_try */
static sigjmp_buf broken_off;               /* the same thread */

static void fault(int number, siginfo_t *info, void *context)
{
    if (os_thread_id() == __atomic_load_n(&trying, __ATOMIC_RELAXED))
        siglongjmp(broken_off, 1);
    pass_on(&program_actions[number == SIGBUS], number, info, context);
}

COLD bool os_try(void (*work)(void *), void *argument)
{
    ASSERT(lock_none_held());
    KEEP_ERRNO;
    struct sigaction action = {.sa_sigaction = fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 2; i++)
        sigaction(faults[i], &action, &program_actions[i]);
    __atomic_store_n(&trying, os_thread_id(), __ATOMIC_RELAXED);
    bool whole = sigsetjmp(broken_off, 1) == 0;
    if (whole)
        work(argument);
    __atomic_store_n(&trying, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        sigaction(faults[i], &program_actions[i], NULL);
    return whole;
}

static struct sigaction earlier[2];                      /* the program's; one is in use */
static const struct sigaction *before_look;              /* atomic */
static bool (*fault_look)(const struct os_fault *fault); /* constant once the handler is set */

static struct os_fault fault_of(const siginfo_t *info, const void *context)
{
    struct os_fault fault = {info->si_addr, NULL, "access"};
#if defined __x86_64__
    const ucontext_t *at = context;
    fault.code = (const void *)at->uc_mcontext.gregs[REG_RIP];
    fault.access = (at->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "write" : "read";
#elif defined __aarch64__
    const ucontext_t *at = context;
    fault.code = (const void *)at->uc_mcontext.pc;
#else
    (void)context;
#endif
    return fault;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    KEEP_ERRNO;
    const struct os_fault fault = fault_of(info, context);
    if (is_sent(info) || !fault_look(&fault))
        pass_on(__atomic_load_n(&before_look, __ATOMIC_ACQUIRE), number, info, context);
}

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
    return (a->sa_flags & SA_SIGINFO) == (b->sa_flags & SA_SIGINFO) &&
           a->sa_handler == b->sa_handler;
}

COLD bool os_on_fault(bool (*look)(const struct os_fault *fault))
{
    ASSERT(lock_none_held());
    KEEP_ERRNO;
    struct sigaction *unused = &earlier[before_look == &earlier[0]];
    struct sigaction found, ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGSEGV, NULL, &found) != 0)
        return false;
    bool seen = fault_look == NULL || is_same(&found, unused);
    if (is_same(&found, &ours))
        return true;
    *unused = found;
    if (!seen)
        return true;
    fault_look = look;
    __atomic_store_n(&before_look, unused, __ATOMIC_RELEASE);
    return sigaction(SIGSEGV, &ours, NULL) == 0;
}

/* ---- the end ---- */

static void raise_abort(void)
{
    sigset_t abort_only;
    sigemptyset(&abort_only);
    sigaddset(&abort_only, SIGABRT);
    pthread_sigmask(SIG_UNBLOCK, &abort_only, NULL);
    CALL(SYS_tgkill, os_process(), os_thread_id(), SIGABRT);
}

COLD _Noreturn void os_abort(void)
{
    raise_abort();
    os_die(); /* the handler returned, or the signal is ignored */
}

COLD _Noreturn void os_die(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    sigaction(SIGABRT, &action, NULL);
    raise_abort();
    __builtin_trap();
}
