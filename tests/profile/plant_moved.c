/* Makes code that calls, moves it and puts other code where it was, as a just-in-time compiler
 * does, and says so in a jitdump. It keeps blocks behind each. Argument: the dump's name. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))
#define KEPT 2048
#define BLOCK 16384
#define PAGE 4096

typedef void function(void (*what)(void));

static void *kept[3 * KEPT];
static unsigned count;
static FILE *dump;

CALLED static void keep(void)
{
    for (unsigned i = 0; i < KEPT; i++) {
        kept[count] = malloc(BLOCK);
        memset(kept[count++], 1, BLOCK);
    }
}

static uint64_t now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* push %rbp; mov %rsp, %rbp; call *%rdi; nop; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x90, 0x5d, 0xc3};

static void begin(const char *name)
{
    struct {
        char magic[4];
        uint32_t version, bytes, machine, pad, pid;
        uint64_t time, flags;
    } head = {{'D', 'T', 'i', 'J'}, 1, sizeof head, 62, 0, (uint32_t)getpid(), now(), 0};
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dump = fdopen(file, "w");
    fwrite(&head, sizeof head, 1, dump);
    fflush(dump);
    /* By this perf finds it. */
    if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
        exit(1);
}

static void loaded(const char *name, function *at, uint64_t number)
{
    struct {
        uint32_t kind, bytes;
        uint64_t time;
        uint32_t pid, thread;
        uint64_t start, address, size, number;
    } one = {0, 0, now(), (uint32_t)getpid(), 0, (uintptr_t)at, (uintptr_t)at, sizeof code, number};
    one.bytes = (uint32_t)(sizeof one + strlen(name) + 1 + sizeof code);
    fwrite(&one, sizeof one, 1, dump);
    fwrite(name, strlen(name) + 1, 1, dump);
    fwrite(code, sizeof code, 1, dump);
}

static void moved(function *from, function *to, uint64_t number)
{
    struct {
        uint32_t kind, bytes;
        uint64_t time;
        uint32_t pid, thread;
        uint64_t start, former, address, size, number;
    } one = {1,           sizeof one,    now(),           (uint32_t)getpid(),
             0,           (uintptr_t)to, (uintptr_t)from, (uintptr_t)to,
             sizeof code, number};
    fwrite(&one, sizeof one, 1, dump);
}

CALLED static void calls_early(function *early) { early(keep); }
CALLED static void calls_late(function *late) { late(keep); }
CALLED static void calls_moved(function *early) { early(keep); }

int main(int words, char **word)
{
    unsigned char *made = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words != 2 || made == MAP_FAILED)
        return 1;
    function *first = (function *)made, *second = (function *)(made + PAGE);
    begin(word[1]);
    memcpy(made, code, sizeof code);
    loaded("early", first, 0);
    calls_early(first);
    memcpy(made + PAGE, code, sizeof code);
    moved(first, second, 0);
    loaded("late", first, 1);
    calls_late(first);
    calls_moved(second);
    return fclose(dump);
}
