/* Allocates, then prints the options that it is asked for as they are in force, one "name value" on
 * a line ("name none" where there is no such option); "privileged" when the kernel says that the
 * program has raised privileges.
 *
 * Usage: show NAME... */
#include <hakmem/hakmem.h>

#include <errno.h>
#include <stdio.h>
#include <sys/auxv.h>

int main(int argc, char **argv)
{
    /* The first call is one of malloc, as in any program; it reads the options. */
    errno = E2BIG;
    hakmem_free(hakmem_malloc(1));
    if (errno != E2BIG) {
        printf("errno: expected %d, found %d\n", E2BIG, errno);
        return 1;
    }
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
