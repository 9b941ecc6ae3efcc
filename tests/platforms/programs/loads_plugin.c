/* A program in C that opens a part in C++, as interpreters open their extensions. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *part = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*plugin)(void) = part != NULL ? (int (*)(void))dlsym(part, "plugin") : NULL;
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "which part?");
        return 2;
    }
    int wrong = plugin();
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
