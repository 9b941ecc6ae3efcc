/* Loads a library whose calls of malloc stay inside it (RTLD_DEEPBIND); this file is also that
 * library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LIBRARY

int work(void)
{
    void *volatile block = malloc(10);
    free(block);
    return block != NULL;
}

#else

int main(int count, char **arguments)
{
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*work)(void) = (int (*)(void))dlsym(library, "work");
    void *volatile block = malloc(10);
    free(block);
    return work() ? 0 : 1;
}

#endif
