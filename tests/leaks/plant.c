/* Loses and keeps blocks: leaks_plant WORD... does what each word says, in order. A block's
 * function says what becomes of it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

struct node {
    struct node *volatile next;
    char more[40];
};

static struct node *volatile global;
static char *volatile interior;
static void *volatile *mapped;
static struct node *volatile rest;
static void *volatile table[8];
static int ready; /* threads that have begun; atomic */

/* Overwrites what calls have left below on the stack, and in registers. */
NOINLINE static void wipe(void)
{
    volatile char junk[16384];
    memset((void *)junk, 0, sizeof junk);
#if defined(__x86_64__)
    __asm__ volatile("xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi; xor %%edi, %%edi;"
                     "xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d;"
                     "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2;"
                     "pxor %%xmm3, %%xmm3; pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5;"
                     "pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7; pxor %%xmm8, %%xmm8;"
                     "pxor %%xmm9, %%xmm9; pxor %%xmm10, %%xmm10; pxor %%xmm11, %%xmm11;"
                     "pxor %%xmm12, %%xmm12; pxor %%xmm13, %%xmm13; pxor %%xmm14, %%xmm14;"
                     "pxor %%xmm15, %%xmm15"
                     :
                     :
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
                       "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                       "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

NOINLINE static struct node *node_new(struct node *next)
{
    struct node *node = calloc(1, sizeof *node);
    if (node == NULL)
        abort();
    node->next = next;
    return node;
}

NOINLINE static void lost_direct(void) { table[0] = malloc(100); }

NOINLINE static void lost_chain(void)
{
    struct node *first = NULL;
    for (int i = 0; i < 11; i++)
        first = node_new(first);
    table[1] = first;
}

NOINLINE static void lost_cycle(void)
{
    struct node *a = node_new(NULL);
    struct node *b = node_new(a);
    a->next = b;
    table[2] = a;
}

/* Blocks above 64 KiB and above 2 MiB are no blocks of a slab. */
NOINLINE static void lost_large(void) { table[3] = malloc(300000); }
NOINLINE static void lost_huge(void) { table[4] = malloc(5000000); }
NOINLINE static void lost_aligned(void) { table[5] = aligned_alloc(4096, 4096); }

/* Only a lost block of another function refers to it. */
NOINLINE static struct node *lost_indirectly(void) { return node_new(NULL); }
NOINLINE static void lost_owner(void) { table[6] = node_new(lost_indirectly()); }

static void lose(void)
{
    lost_direct();
    lost_chain();
    lost_cycle();
    lost_large();
    lost_huge();
    lost_aligned();
    lost_owner();
    memset((void *)table, 0, sizeof table);
    wipe();
}

NOINLINE static void kept_global(void) { global = node_new(node_new(NULL)); }
NOINLINE static void kept_interior(void) { interior = (char *)malloc(3000) + 1500; }

NOINLINE static void kept_mapped(void)
{
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped[17] = malloc(64);
}

/* A pointer in the part of a block that realloc added without moving it. */
NOINLINE static void kept_grown(void)
{
    char *p = malloc(1);
    p = realloc(p, 16);
    rest = (struct node *)p;
    *(void **)(p + 8) = malloc(64);
}

NOINLINE static void kept_huge(void)
{
    void **p = malloc(5000000);
    p[600000] = malloc(64);
    global->next->next = (struct node *)p;
}

/* ---- threads that wait until the end ---- */

static void wait_for_ever(void)
{
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
}

static __thread struct node *volatile own;

NOINLINE static void *kept_by_thread_local(void *unused)
{
    (void)unused;
    own = node_new(NULL);
    wipe();
    wait_for_ever();
    return NULL;
}

NOINLINE static void *kept_by_stack(void *unused)
{
    (void)unused;
    struct node *volatile node = node_new(NULL);
    wipe();
    wait_for_ever();
    return (void *)node;
}

/* In a register that calls preserve, in a loop that calls nothing. */
NOINLINE static void *kept_by_register(void *unused)
{
    (void)unused;
    uintptr_t node = (uintptr_t)node_new(NULL);
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
#if defined(__x86_64__)
    __asm__ volatile("mov %0, %%r15\n\txor %%ebx, %%ebx\n1:\tpause\n\tjmp 1b"
                     :
                     : "r"(node)
                     : "r15", "rbx", "memory");
#else
    __asm__ volatile("mov x23, %0\n1:\tyield\n\tb 1b" : : "r"(node) : "x23", "memory");
#endif
    return NULL;
}

static void start(void *(*body)(void *))
{
    static int expected;
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0)
        abort();
    pthread_detach(thread);
    for (expected++; __atomic_load_n(&ready, __ATOMIC_SEQ_CST) < expected;)
        usleep(1000);
}

static void keep(void)
{
    kept_global();
    kept_interior();
    kept_mapped();
    kept_grown();
    kept_huge();
    start(kept_by_thread_local);
    start(kept_by_stack);
    start(kept_by_register);
    wipe();
}

/* ---- processes ---- */

static void await(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        ;
}

static void fork_one(void)
{
    pid_t child = fork();
    if (child == 0) {
        printf("%d\n", getpid());
        lost_direct();
        table[0] = NULL;
        wipe();
        exit(0);
    }
    await(child);
}

extern char **environ;

/* Children that have this one's memory while they live. */
static void spawn(const char *program)
{
    char *words[] = {(char *)program, NULL};
    pid_t child;
    if (posix_spawn(&child, program, NULL, NULL, words, environ) == 0)
        await(child);
    child = vfork();
    if (child == 0) {
        execve(program, words, environ);
        _exit(0);
    }
    await(child);
}

static void *ends_soon(void *unused)
{
    free(malloc(1000));
    return unused;
}

static void *works(void *unused)
{
    for (int i = 0; i < 25; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, ends_soon, NULL) != 0)
            abort();
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        await(child);
        pthread_join(thread, NULL);
    }
    return unused;
}

static void work(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, works, NULL) != 0)
            abort();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void *ends_the_process(void *unused)
{
    (void)unused;
    usleep(10000);
    exit(5);
}

/* Another thread executes a program: the first one ends. */
static char *const *words_to_execute;

static void *executes(void *unused)
{
    (void)unused;
    execv("/proc/self/exe", words_to_execute);
    abort();
}

static void handler(int signal) { _exit(signal); }

static void do_it(const char *word, char **words)
{
    pthread_t thread;
    if (strcmp(word, "lose") == 0)
        lose();
    else if (strcmp(word, "keep") == 0)
        keep();
    else if (strcmp(word, "one") == 0) {
        lost_direct();
        table[0] = NULL;
        wipe();
    } else if (strcmp(word, "fork") == 0)
        fork_one();
    else if (strcmp(word, "spawn") == 0) {
        spawn("/nowhere/at/all");
        spawn("/bin/true");
    } else if (strcmp(word, "work") == 0)
        work();
    else if (strcmp(word, "exec") == 0) {
        execv("/proc/self/exe", words);
        abort();
    } else if (strcmp(word, "thread_exec") == 0) {
        words_to_execute = words;
        if (pthread_create(&thread, NULL, executes, NULL) == 0)
            pthread_join(thread, NULL);
    } else if (strcmp(word, "_exit") == 0)
        _exit(4);
    else if (strcmp(word, "exit3") == 0)
        exit(3);
    else if (strcmp(word, "abort") == 0)
        abort();
    else if (strcmp(word, "term") == 0)
        raise(SIGTERM);
    else if (strcmp(word, "kill") == 0)
        raise(SIGKILL);
    else if (strcmp(word, "fault") == 0)
        *(volatile int *)(uintptr_t)getppid() = 1;
    else if (strcmp(word, "stop") == 0)
        raise(SIGSTOP);
    else if (strcmp(word, "handle") == 0)
        signal(SIGTERM, handler);
    else if (strcmp(word, "wait") == 0) {
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    } else if (strcmp(word, "leave") == 0) /* the first thread ends; another one ends the rest */
    {
        if (pthread_create(&thread, NULL, ends_the_process, NULL) == 0)
            syscall(SYS_exit, 0);
    } else
        abort();
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 1; i < argc; i++) {
        /* What "exec" starts does the words after it. */
        char *before = argv[i];
        argv[i] = argv[0];
        do_it(before, argv + i);
        argv[i] = before;
    }
    return 0;
}
