/* Signals while several threads allocate: a profiler's, a thousand times a second in each of eight
 * threads; handlers that make children (the process of one thread: step.c); and the small stacks
 * on which handlers and threads run. */
#include "trap.h"

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { THREADS = 8, SAMPLES = 1000 };
static struct crew crew;
static volatile bool stop;

static void *work_until_stopped(void *seat)
{
    while (!stop)
        seat_work(seat, 500);
    return NULL;
}

/* ---- a profiler ---- */

static atomic_ulong samples;
static sem_t sampled;
static int nowhere;

/* What a profiler does that keeps to async-signal-safe functions. */
static void on_profile(int number, siginfo_t *info, void *context)
{
    (void)number;
    int saved = errno;
    struct {
        struct timespec time;
        siginfo_t info;
        char registers[256];
    } sample;
    clock_gettime(CLOCK_MONOTONIC, &sample.time);
    sample.info = *info;
    memcpy(sample.registers, context, sizeof sample.registers);
    if (write(nowhere, &sample, sizeof sample) != sizeof sample || sem_post(&sampled) != 0)
        _exit(99);
    close(-1); /* an errno for what was interrupted to lose */
    atomic_fetch_add(&samples, 1);
    errno = saved;
}

/* On the clock on the wall: those of processor time tick only as often as the kernel. */
static void *work_and_be_sampled(void *seat)
{
    timer_t timer;
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &every, NULL) != 0)
        fail("a timer was refused");
    work_until_stopped(seat);
    timer_delete(timer);
    return NULL;
}

/* Without SA_RESTART: what the allocator waits for is interrupted too. */
TEST(profiled_threads)
{
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_sigaction = on_profile, .sa_flags = SA_SIGINFO};
    struct timespec pause = {0, 20000000};
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    sem_init(&sampled, 0, 0);
    sigaction(SIGPROF, &action, NULL);
    stop = false;
    for (unsigned i = 0; i < THREADS; i++)
        threads[i] = started(work_and_be_sampled, &crew.seats[i]);
    while (samples < SAMPLES)
        nanosleep(&pause, NULL);
    stop = true;
    threads_join(threads, THREADS);
    close(nowhere);
    int seen = 0;
    sem_getvalue(&sampled, &seen);
    CHECK_SIZE("samples seen", (size_t)seen, samples);
}

/* ---- children ---- */

extern char **environ;
static char *const arguments[] = {"signals", "--nothing", NULL};
static atomic_uint children;

/* _Fork is fork without handlers, made for this place; in a child of several threads only
 * async-signal-safe functions may follow. */
static void on_signal(int number)
{
    (void)number;
    int saved = errno, status = -1;
    pid_t child = -1;
    switch (atomic_fetch_add(&children, 1) % 4) {
    case 0:
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0)
            child = -1;
        break;
    case 1:
        if ((child = vfork()) == 0)
            _exit(0);
        break;
    case 2:
        if ((child = _Fork()) == 0) {
            execv("/proc/self/exe", arguments);
            _exit(1);
        }
        break;
    default:
        if ((child = _Fork()) == 0)
            _exit(0);
        break;
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    CHECK(child > 0 && status == 0, "child %d: expected status 0, found %#x", (int)child,
          (unsigned)status);
    errno = saved;
}

TEST(handlers_make_children_beside_threads)
{
    pthread_t threads[4];
    struct sigaction action = {.sa_handler = on_signal};
    struct timespec pause = {0, 1000000};
    sigaction(SIGUSR1, &action, NULL);
    stop = false;
    for (unsigned i = 0; i < 4; i++)
        threads[i] = started(work_until_stopped, &crew.seats[i]);
    for (unsigned i = 0; children < 100; i++) {
        pthread_kill(threads[i % 4], SIGUSR1);
        nanosleep(&pause, NULL);
    }
    stop = true;
    threads_join(threads, 4);
}

/* ---- little stack ---- */

static void *first_calls(void *unused)
{
    use_the_heap(1);
    return unused;
}

TEST(threads_of_the_least_stack)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (!CHECK(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0, "no such stack"))
        return;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        if (CHECK(pthread_create(&thread, &attributes, first_calls, NULL) == 0,
                  "pthread_create failed"))
            pthread_join(thread, NULL);
    }
    pthread_attr_destroy(&attributes);
}

static void on_own_stack(int number)
{
    (void)number;
    use_the_heap(2);
}

/* What the kernel puts on it is several KiB where registers are wide; beyond that, 8 KiB. */
static size_t stack_of_handlers(void)
{
#ifdef _SC_MINSIGSTKSZ
    long least = sysconf(_SC_MINSIGSTKSZ);
    return (least > 0 ? (size_t)least : MINSIGSTKSZ) + 8 * KiB;
#else
    return MINSIGSTKSZ + 8 * KiB;
#endif
}

static void *take_a_signal(void *unused)
{
    static char *stack;
    if (stack == NULL)
        stack = pages_from_kernel(stack_of_handlers());
    stack_t own = {.ss_sp = stack, .ss_size = stack_of_handlers()};
    CHECK(sigaltstack(&own, NULL) == 0, "sigaltstack: %s", error_name(errno));
    pthread_kill(pthread_self(), SIGUSR2);
    return unused;
}

/* The thread's first call of the allocator is its handler's. */
TEST(handler_on_a_stack_of_its_own)
{
    struct sigaction action = {.sa_handler = on_own_stack, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, NULL);
    for (int i = 0; i < 10; i++)
        in_thread(take_a_signal, NULL);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return 0;
    check_start("signals");
    crew_make(&crew, THREADS, 200);
    tests_run();
    crew_clear(&crew);
    return check_end();
}
