/* Frees a block of another malloc: that of a second libc, in a separate namespace. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    void *(*other)(size_t) = libc == NULL ? NULL : (void *(*)(size_t))dlsym(libc, "malloc");
    if (other == NULL || other == malloc) {
        fprintf(stderr, "expected the malloc of a second libc, found %s\n", dlerror());
        return 2;
    }
    free(other(100));
    return 0;
}
