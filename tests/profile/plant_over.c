/* Loads a plug-in, calls it and unloads it. Then it makes code where the plug-in's function was,
 * and allocates below it. It writes a name of that code to a file, in the format of
 * /tmp/perf-PID.map. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCKS 64
#define BLOCK ((size_t)1 << 20)
#define PLUGGED 2048
#define PAGE ((uintptr_t)4096)

static void *plugged[PLUGGED];
static void *volatile kept[BLOCKS];

/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

__attribute__((noinline)) static void keep(void)
{
    for (int i = 0; i < BLOCKS; i++)
        kept[i] = malloc(BLOCK);
}

int main(int count, char **words)
{
    void *plug = count > 3 ? dlopen(words[1], RTLD_NOW) : NULL;
    void *function = plug != NULL ? dlsym(plug, words[2]) : NULL;
    if (function == NULL)
        return 2;
    ((void (*)(void **))function)(plugged);
    dlclose(plug);
    uintptr_t page = (uintptr_t)function & ~(PAGE - 1);
    if (mmap((void *)page, 2 * PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)page)
        return 3; /* the plug-in is still there */
    memcpy(function, code, sizeof code);
    FILE *names = fopen(words[3], "w");
    if (names == NULL ||
        fprintf(names, "%lx %zx made\n", (unsigned long)function, sizeof code) < 0 ||
        fclose(names) != 0 || mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_EXEC) != 0)
        return 4;
    ((void (*)(void (*)(void)))function)(keep);
    return 0;
}
