/* Allocates, then prints the options that it is asked for as they are in force, one "name value" on
 * a line ("name none" where there is no such option); "privileged" when the kernel says that the
 * program has raised privileges.
 *
 * Usage: show [--again]... [--exec PROGRAM ARGUMENT...] NAME...
 *
 * After --again it starts itself anew with what follows, after --exec another program. */
#include <hakmem/hakmem.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    /* The first call is one of malloc, as in any program; it reads the options. */
    errno = E2BIG;
    hakmem_free(hakmem_malloc(1));
    if (errno != E2BIG) {
        printf("errno: expected %d, found %d\n", E2BIG, errno);
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "--again") == 0) {
        argv[1] = argv[0];
        return execv("/proc/self/exe", argv + 1);
    }
    if (argc > 2 && strcmp(argv[1], "--exec") == 0)
        return execvp(argv[2], argv + 2);
    if (getauxval(AT_SECURE) != 0)
        puts("privileged");
    uint64_t none = 12345;
    if (hakmem_option(NULL, &none) != ENOENT || none != 12345)
        return 1;
    for (int i = 1; i < argc; i++) {
        uint64_t value = 12345;
        errno = E2BIG;
        int error = hakmem_option(argv[i], &value);
        if (error == ENOENT && value == 12345 && errno == E2BIG)
            printf("%s none\n", argv[i]);
        else if (error == 0 && errno == E2BIG)
            printf("%s %llu\n", argv[i], (unsigned long long)value);
        else
            return 1;
    }
    return 0;
}
