/* Allocates below code that it makes itself, as an interpreter makes trampolines for perf: they
 * call the function in the first register of arguments. It writes their names to the file that it
 * is given, in the format of /tmp/perf-PID.map. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCKS 64
#define BLOCK ((size_t)1 << 20)
#define SLOT 64

typedef void function(void);
typedef void trampoline(function *);

static unsigned char *code;
static void *volatile kept[3 * BLOCKS];
static unsigned keeps;

/* sub $8, %rsp; call *%rdi; add $8, %rsp; ret */
static const unsigned char plain[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
/* As the first, with a nop that nobody expects. */
static const unsigned char strange[] = {0x48, 0x83, 0xec, 8,    0xff, 0xd7,
                                        0x90, 0x48, 0x83, 0xc4, 8,    0xc3};

static trampoline *at(unsigned slot)
{
    trampoline *made;
    void *start = code + slot * SLOT;
    memcpy(&made, &start, sizeof made);
    return made;
}

__attribute__((noinline)) static void keep(void)
{
    for (int i = 0; i < BLOCKS; i++)
        kept[keeps++] = malloc(BLOCK); /* here: keep */
}

__attribute__((noinline)) static void middle(void) { at(1)(keep); }

/* Has a frame pointer, whatever it is compiled with, so what is above it needs the register. */
__attribute__((noinline)) static void outer(size_t n)
{
    volatile char *room = __builtin_alloca(n);
    room[0] = 0;
    at(0)(middle);
    room[n - 1] = 0;
}

__attribute__((noinline)) static void lost(void) { at(2)(keep); }

/* The code that called this is gone, as where an interpreter ends by a call of the program's. */
__attribute__((noinline)) static void end(void)
{
    munmap(code, 4096);
    for (int i = 0; i < BLOCKS; i++)
        free(malloc(BLOCK));
    exit(0);
}

int main(int count, char **words)
{
    FILE *names = fopen(count > 1 ? words[1] : "/dev/null", "w");
    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED || names == NULL)
        return 2;
    memcpy(code, plain, sizeof plain);
    memcpy(code + SLOT, framed, sizeof framed);
    memcpy(code + 2 * SLOT, strange, sizeof strange);
    memcpy(code + 3 * SLOT, plain, sizeof plain);
    fprintf(names, "%lx %x py::first:one.py\n", (unsigned long)code, SLOT);
    fprintf(names, "0x%lx %x second\n", (unsigned long)code + SLOT, SLOT);
    fprintf(names, "%lx %x third\nnonsense\n", (unsigned long)code + 2 * SLOT, SLOT);
    if (fclose(names) != 0 || mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
        return 2;
    outer((size_t)count * 100);
    lost();
    at(3)(end);
    return 2;
}
