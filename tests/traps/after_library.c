/* Linked by after.c, with nothing that says that it needs the allocator: preloaded, the allocator's
 * own end comes before this library's destructor, which forks, allocates and frees while threads
 * go on allocating (traps 30, 40). */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void after_start(unsigned threads);

enum { BLOCKS = 3000, FORKS = 30, CHILD_SECONDS = 60 };

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;
static char *kept;

static void use(unsigned seed)
{
    unsigned char *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = do_malloc(16 + (seed + i / 1000) % 9 * 300);
        if (blocks[i] == NULL)
            _exit(3);
        blocks[i][0] = (unsigned char)(seed + i);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i][0] != (unsigned char)(seed + i))
            _exit(4);
        do_free(blocks[i]);
    }
}

static void *use_for_ever(void *unused)
{
    for (unsigned seed = 0; unused == NULL; seed++)
        use(seed);
    return NULL;
}

void after_start(unsigned threads)
{
    kept = do_malloc(20000);
    if (kept == NULL)
        _exit(3);
    memset(kept, 7, 20000);
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, use_for_ever, NULL) != 0)
            _exit(5);
    }
}

static int child_status(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        for (unsigned seed = 0; seed < 4; seed++)
            use(seed);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

/* By now the exit status is 0; only _exit can change it. */
__attribute__((destructor)) static void at_the_very_end(void)
{
    if (kept == NULL)
        return;
    for (int i = 0; i < FORKS; i++) {
        int status = child_status();
        if (status == 0)
            continue;
        char line[160];
        int length = snprintf(line, sizeof line,
                              "after: child %d of a fork after the allocator's end: expected "
                              "status 0, found %#x%s\n",
                              i, (unsigned)status, status == SIGALRM ? " (it hung)" : "");
        if (write(STDERR_FILENO, line, (size_t)length) < 0)
            _exit(99);
        _exit(1);
    }
    use(1);
    if (kept[0] != 7 || kept[19999] != 7)
        _exit(4);
    do_free(kept);
    static const char text[] = "after: done\n";
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(99);
}
