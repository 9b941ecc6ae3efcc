/* Wrong accesses to guarded blocks: guarded CASE. Prints the block, and "end" where it gets so far.
 * HAKMEM_GUARDS_A_SECOND is set. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 77 /* of a block; others have a multiple of 16 */
#define PAGE ((uintptr_t)sysconf(_SC_PAGESIZE))

/* Exported, so that a stack has the name. */
#define NAMED __attribute__((noinline))

/* Calls through these are not what a compiler thinks it knows. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void (*volatile do_free)(void *) = free;

NAMED char *allocate_it(void) { return do_malloc(BYTES); }
NAMED void free_it(char *p) { do_free(p); }
NAMED char read_it(const volatile char *p) { return *p; }
NAMED void write_it(volatile char *p) { *p = 'x'; }

/* A guarded block that begins or ends with its page. */
static char *guarded(bool begins)
{
    for (;;) {
        char *p = allocate_it();
        if (malloc_usable_size(p) == BYTES && ((uintptr_t)p % PAGE == 0) == begins) {
            printf("block %p\n", (void *)p);
            fflush(stdout);
            return p;
        }
        free(p);
        usleep(100);
        free(do_malloc((size_t)3 << 20)); /* which looks at the time */
    }
}

static struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
} * cases;

#define CASE(name)                                            \
    static void name(void);                                   \
    __attribute__((constructor)) static void name##_add(void) \
    {                                                         \
        static struct test_case self = {#name, name, NULL};   \
        self.next = cases;                                    \
        cases = &self;                                        \
    }                                                         \
    static void name(void)

CASE(read_after_free)
{
    char *p = guarded(false);
    free_it(p);
    read_it(p + 3);
}

CASE(write_after_free)
{
    char *p = guarded(false);
    free_it(p);
    write_it(p + 3);
}

CASE(read_beyond) { read_it(guarded(false) + BYTES + 20); }
CASE(write_beyond) { write_it(guarded(false) + BYTES + 20); }
CASE(write_before) { write_it(guarded(true) - 1); }

CASE(overrun)
{
    char *p = guarded(false);
    write_it(p + BYTES);
    free_it(p);
}

CASE(underrun)
{
    char *p = guarded(false);
    write_it(p - 1);
    free_it(p);
}

CASE(twice)
{
    char *p = guarded(false);
    free_it(p);
    free_it(p);
}

CASE(inside)
{
    char *p = guarded(false);
    free_it(p + 16);
}

CASE(realloc_after_free)
{
    char *p = guarded(false);
    free_it(p);
    printf("realloc %p\n", do_realloc(p, 200));
}

#define LESS 40

CASE(shrunk_and_overrun)
{
    char *p = guarded(false);
    if (do_realloc(p, LESS) != p)
        puts("moved");
    write_it(p + LESS);
    free_it(p);
}

CASE(overrun_and_shrunk)
{
    char *p = guarded(false);
    write_it(p + BYTES);
    do_realloc(p, LESS);
}

static void *free_there(void *p)
{
    free_it(p);
    return NULL;
}

CASE(freed_by_another_thread)
{
    char *p = guarded(false);
    pthread_t thread;
    pthread_create(&thread, NULL, free_there, p);
    pthread_join(thread, NULL);
    read_it(p);
}

static void *read_there(void *p)
{
    read_it(p);
    return NULL;
}

CASE(in_another_thread)
{
    char *p = guarded(false);
    free_it(p);
    pthread_t thread;
    pthread_create(&thread, NULL, read_there, p);
    pthread_join(thread, NULL);
}

CASE(in_many_threads)
{
    char *p = guarded(false);
    free_it(p);
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, read_there, p);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
}

CASE(in_a_child)
{
    char *p = guarded(false);
    pid_t child = fork();
    if (child == 0) {
        free_it(p);
        read_it(p);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    write_it(p); /* the parent's is in use */
    free_it(p);
}

static void on_fault(int number)
{
    (void)number;
    static const char text[] = "handled\n";
    if (write(STDOUT_FILENO, text, sizeof text - 1) > 0)
        _exit(3);
}

static void on_fault_with_more(int number, siginfo_t *info, void *context)
{
    if (info->si_addr != NULL && context != NULL)
        on_fault(number);
}

static bool handles(int argc, char **argv) { return argc > 2 && strcmp(argv[2], "--handle") == 0; }

static void set_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_fault_with_more, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
}

CASE(with_a_later_handler)
{
    char *p = guarded(false);
    free_it(p);
    signal(SIGSEGV, on_fault);
    read_it(p);
}

static void free_with_a_size(size_t size)
{
    char *p = guarded(false);
    void (*free_sized)(void *, size_t) =
        (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    free_sized(p, size);
}

CASE(freed_with_less_when_shrunk)
{
    char *p = guarded(false);
    void (*free_sized)(void *, size_t) =
        (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    free_sized(do_realloc(p, LESS), LESS);
}

CASE(freed_with_its_size) { free_with_a_size(BYTES); }
CASE(freed_with_more) { free_with_a_size(BYTES + 1); }
CASE(freed_with_less) { free_with_a_size(BYTES - 1); }

/* After seconds it is called after ours. */
CASE(with_a_handler_that_stays)
{
    signal(SIGSEGV, on_fault);
    for (int i = 0; i < 4; i++) {
        sleep(1);
        free(guarded(false));
    }
    read_after_free();
}

CASE(wild_pointer)
{
    guarded(false);
    volatile uintptr_t nowhere = 8;
    read_it((char *)nowhere);
}

CASE(signal_sent)
{
    guarded(false);
    raise(SIGSEGV);
}

int main(int argc, char **argv)
{
    if (handles(argc, argv)) {
        set_handler();
        int (*set)(const char *, uint64_t) = dlsym(RTLD_DEFAULT, "hakmem_option_set");
        if (set == NULL || set("guards_a_second", 1000) != 0)
            return 2;
    }
    for (const struct test_case *c = cases; argc > 1 && c != NULL; c = c->next)
        if (strcmp(argv[1], c->name) == 0) {
            c->run();
            puts("end");
            return 0;
        }
    fputs("usage: guarded CASE [--handle]\n", stderr);
    return 2;
}
