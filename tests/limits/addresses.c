/* Says how many KiB of addresses it has: at its start, and after a few calls. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long addresses(void)
{
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY);
    ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "VmSize:");
    return line != NULL ? atol(line + strlen("VmSize:")) : -1;
}

int main(void)
{
    long start = addresses();
    void *blocks[64];
    for (size_t i = 0; i < 64; i++)
        blocks[i] = malloc(16 + i % 4 * 100);
    long later = addresses();
    for (size_t i = 0; i < 64; i++)
        free(blocks[i]);
    printf("%ld %ld\n", start, later);
    return start < 0;
}
