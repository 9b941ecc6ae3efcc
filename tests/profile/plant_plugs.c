/* Loads each of the plug-ins named, calls a function of it, keeps what it allocated and unloads it,
 * by names relative to the folder. A folder behind the function's name is the current one from the
 * call on. In place of a function, a file may be named that takes the plug-in's place. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 2048

static void ***kept;

int main(int count, char **words)
{
    kept = calloc((size_t)count, sizeof *kept);
    for (int i = 1; kept != NULL && i + 1 < count; i += 2) {
        char *name = words[i + 1];
        if (*name == '.') {
            if (rename(name, words[i]) != 0)
                return 1;
            continue;
        }
        void *plug = dlopen(words[i], RTLD_NOW);
        char *folder = strchr(name, '/');
        if (folder != NULL) {
            *folder++ = '\0';
            if (chdir(folder) != 0)
                return 1;
        }
        void (*work)(void **) = plug != NULL ? (void (*)(void **))dlsym(plug, name) : NULL;
        kept[i] = calloc(KEPT, sizeof *kept[i]);
        if (work == NULL || kept[i] == NULL) {
            printf("%s\n", dlerror());
            return 1;
        }
        work(kept[i]);
        printf("%p\n", (void *)work);
        dlclose(plug);
    }
    return 0;
}
