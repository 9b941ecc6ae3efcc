/* Loads each of the plug-ins named, calls it, keeps what it allocated and unloads it, by names
 * relative to the folder. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT 2048

static void **kept[8];

int main(int count, char **words)
{
    for (int i = 1; i + 1 < count; i += 2) {
        void *plug = dlopen(words[i], RTLD_NOW);
        void (*work)(void **) = plug != NULL ? (void (*)(void **))dlsym(plug, words[i + 1]) : NULL;
        kept[i / 2] = calloc(KEPT, sizeof *kept[i]);
        if (work == NULL || kept[i / 2] == NULL) {
            printf("%s\n", dlerror());
            return 1;
        }
        work(kept[i / 2]);
        printf("%p\n", (void *)work);
        dlclose(plug);
    }
    return 0;
}
