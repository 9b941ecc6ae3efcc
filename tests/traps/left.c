/* A call of the allocator that never returns, since a signal handler that interrupted it jumps
 * away, and one that a handler begins in the middle of another. Both are wrong (docs/traps.md), and
 * a lock may be held. The program then goes on, or ends with a report; it never hangs.
 *
 * One child is stepped through the slow paths (x86-64's trap flag), and interrupted at one
 * instruction after the other; others are interrupted by a timer, beside another thread too. */
#include "trap.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define SECONDS_MOST 120 /* until a child counts as one that hangs */

static const char report[] =
    "hakmem: malloc or free: the heap is locked by an earlier call of this "
    "thread, which has not returned";

static bool only_timer;

/* ---- children, and how they end ---- */

static struct {
    unsigned long survived, reported, other;
} ends;

/* With all that it wrote to standard error, cut. */
static int end_of(pid_t child, int from, char *said, size_t room)
{
    size_t used = 0;
    ssize_t got;
    while (used < room - 1 && (got = read(from, said + used, room - 1 - used)) > 0)
        used += (size_t)got;
    said[used] = 0;
    char rest[512];
    while (read(from, rest, sizeof rest) > 0)
        ;
    close(from);
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void judge(const char *what, unsigned long at, int status, const char *said)
{
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (status == 0)
        ends.survived++;
    else if (aborted && strstr(said, report) != NULL)
        ends.reported++;
    else
        ends.other++;
    CHECK(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL), "%s, %lu: it hung", what, at);
    CHECK(status == 0 || WIFSIGNALED(status), "%s, %lu: status %#x, %.300s", what, at,
          (unsigned)status, said);
    CHECK(!aborted || strstr(said, "hakmem: ") != NULL,
          "%s, %lu: it ended without a report: %.300s", what, at, said);
}

/* It is killed where it hangs. The timer of the kernel goes with a process that was left by jumps,
 * too; only SIGKILL can't be lost there. */
static void watch_over(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec once = {.it_value = {.tv_sec = SECONDS_MOST}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &once, NULL) != 0)
        _exit(99);
}

static void in_watched_child(const char *what, void (*work)(void))
{
    int ends_of_pipe[2];
    char said[2000];
    if (pipe(ends_of_pipe) != 0)
        fail("left: no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends_of_pipe[1], STDERR_FILENO);
        close(ends_of_pipe[0]);
        close(ends_of_pipe[1]);
        watch_over();
        work();
        _exit(0);
    }
    close(ends_of_pipe[1]);
    judge(what, 0, end_of(child, ends_of_pipe[0], said, sizeof said), said);
}

/* ---- work that only allocates and frees ---- */

enum { BLOCKS = 3000 };
static const size_t sizes[] = {24, 100, 100, 700, 3000, 40000, 300000, 3 * MiB};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* One of 64 is of any size. */
static size_t size_of(unsigned i) { return sizes[i % 64 == 0 ? i / 64 % SIZES : i % 5]; }

/* What is lost by a jump is never seen again. */
static void allocate(void *volatile *blocks, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        blocks[i] = do_malloc(size_of(i));
    for (unsigned i = 0; i < n; i++) {
        void *p = blocks[i];
        blocks[i] = NULL;
        do_free(p);
    }
}

/* ---- a timer ---- */

static sigjmp_buf out;
static timer_t timer;
static void *volatile here[BLOCKS], *volatile there[BLOCKS];
static volatile bool jumps, reenters, came;

static void on_timer(int number)
{
    (void)number;
    came = true;
    if (reenters)
        do_free(do_malloc(100));
    if (jumps)
        siglongjmp(out, 1);
}

/* In this thread, some 0.05 to 0.5 ms from now. */
static void timer_starts(unsigned turn)
{
    struct itimerspec once = {.it_value = {.tv_nsec = (long)(50000 + mix64(turn) % 450000)}};
    timer_settime(timer, 0, &once, NULL);
}

static void interrupted(unsigned times)
{
    static volatile unsigned turn;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct sigaction action = {.sa_handler = on_timer};
    sigaction(SIGUSR1, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    for (turn = 0; turn < times; turn++) {
        if (sigsetjmp(out, 1) != 0)
            continue;
        came = false;
        timer_starts(turn);
        for (volatile unsigned i = 0; i < 10 && !came; i++)
            allocate(here, BLOCKS);
    }
    jumps = reenters = false;
    allocate(here, BLOCKS);
}

static void jumps_out(void)
{
    jumps = true;
    interrupted(200);
}

static void allocates_in_the_handler(void)
{
    reenters = true;
    interrupted(40);
}

static volatile bool stop;

static void *allocate_there(void *unused)
{
    while (!stop)
        allocate(there, BLOCKS);
    return unused;
}

/* The other's calls return. */
static void jumps_out_beside_a_thread(void)
{
    pthread_t other = started(allocate_there, NULL);
    jumps_out();
    stop = true;
    pthread_join(other, NULL);
}

TEST(a_timer_interrupts)
{
    in_watched_child("jumps out", jumps_out);
    in_watched_child("jumps out beside a thread", jumps_out_beside_a_thread);
    in_watched_child("allocates in the handler", allocates_in_the_handler);
}

/* ---- each instruction of the slow paths ---- */

#ifdef __x86_64__
#define TRAP_FLAG 0x100
enum { PLACES = 16, FEW = 40 };

static volatile bool steps;
static volatile unsigned long step, step_of_interest;

static void on_step(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    bool now = steps && ++step == step_of_interest;
    *flags = steps && !now ? *flags | TRAP_FLAG : *flags & ~(greg_t)TRAP_FLAG;
    if (!now)
        return;
    steps = false;
    if (reenters)
        allocate(there, FEW);
    if (jumps)
        siglongjmp(out, 1);
}

static void stepped(void)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    if (sigsetjmp(out, 1) == 0) {
        steps = true;
        raise(SIGTRAP);
        for (unsigned i = 0; i < FEW; i++)
            here[i] = do_malloc(100);
        for (unsigned i = 0; i < FEW; i++)
            do_free(here[i]);
        do_free(do_malloc(3 * MiB));
        steps = false;
        raise(SIGTRAP);
    }
    jumps = reenters = false;
    allocate(there, BLOCKS);
    NAME_UNDER_TEST(malloc_trim)(0);
}

static unsigned long steps_in_all(void)
{
    int ends_of_pipe[2];
    unsigned long all = 0;
    if (pipe(ends_of_pipe) != 0)
        fail("left: no pipe");
    pid_t child = fork();
    if (child == 0) {
        watch_over();
        stepped();
        _exit(write(ends_of_pipe[1], (const void *)&step, sizeof step) != sizeof step);
    }
    close(ends_of_pipe[1]);
    if (read(ends_of_pipe[0], &all, sizeof all) != sizeof all)
        fail("left: the child that counts ended early");
    close(ends_of_pipe[0]);
    waitpid(child, NULL, 0);
    return all;
}

static void at_each_step(const char *what)
{
    unsigned long all = steps_in_all();
    CHECK(all > 1000, "instructions: expected 1000 or more, found %lu", all);
    for (step_of_interest = 1; step_of_interest <= all; step_of_interest += all / PLACES + 1)
        in_watched_child(what, stepped);
}

TEST(at_instructions)
{
    if (only_timer)
        return;
    jumps = true;
    at_each_step("jumps out of an instruction");
    jumps = false;
    reenters = true;
    at_each_step("allocates at an instruction");
}
#endif

/* With any argument, only the timer: where a child's end takes long. */
int main(int argc, char **argv)
{
    (void)argv;
    only_timer = argc > 1;
    check_start("left");
    tests_run();
    printf("left: %lu went on, %lu ended with this report, %lu otherwise\n", ends.survived,
           ends.reported, ends.other);
    return check_end();
}
