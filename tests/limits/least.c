/* The least address space in which a block of 100 bytes is given: the program sets the limit and
 * starts itself anew, so that what the loader maps counts too.
 *
 *   least KiB */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc > 2) {
        void *volatile block = malloc(100);
        if (block == NULL)
            fprintf(stderr, "malloc(100) within %s KiB of addresses: expected a block\n", argv[1]);
        return block == NULL;
    }
    rlim_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) * 1024 : 0;
    struct rlimit limit = {bytes, bytes};
    if (bytes == 0 || setrlimit(RLIMIT_AS, &limit) != 0)
        return 2;
    execl("/proc/self/exe", argv[0], argv[1], "limited", NULL);
    return 2;
}
