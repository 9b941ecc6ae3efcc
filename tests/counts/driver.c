/* Runs the work some times to warm up and once to be counted, with the malloc in force. Standard
 * output gets the library that malloc comes from, and a line before and a line after the counted
 * part.
 *
 * Usage: driver SLOTS MIN MAX [WARM-UPS]; one, unless it is said. */
#include "work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct work work;

/* By one plain system call, which needs no memory. */
static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5)
        return 2;
    work.take = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
    work.give = (void (*)(void *))dlsym(RTLD_DEFAULT, "free");
    work.slots = (uint32_t)strtoul(argv[1], NULL, 10);
    work.min = (uint32_t)strtoul(argv[2], NULL, 10);
    work.max = (uint32_t)strtoul(argv[3], NULL, 10);
    if (work.slots == 0 || work.slots > WORK_SLOTS_MOST || work.min == 0 || work.min > work.max)
        return 2;
    Dl_info info;
    if (dladdr((void *)work.take, &info) == 0)
        return 1;
    say(info.dli_fname);

    work_start(&work);
    unsigned long warm_ups = argc == 5 ? strtoul(argv[4], NULL, 10) : 1;
    for (unsigned long i = 0; i < warm_ups; i++)
        if (!work_operate(&work))
            return 1;
    say("\ncounts: begin\n");
    if (!work_operate_measured(&work))
        return 1;
    say("counts: end\n");
    return 0;
}
