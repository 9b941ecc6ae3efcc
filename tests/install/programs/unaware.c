/* Names no malloc: only functions of libc call it. Says which libhakmem.so is mapped. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && getline(&line, &size, maps) > 0) {
        char *path = strchr(line, '/');
        if (path != NULL && strstr(path, "/libhakmem.so") != NULL) {
            fputs(path, stdout);
            return 0;
        }
    }
    return 1;
}
