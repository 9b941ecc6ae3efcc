#define _GNU_SOURCE
#include "rules.h"

#include "architecture.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <hakmem/hakmem.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

/* What this system's headers know. */
static const struct {
    const char *name;
    unsigned number;
} calls[] = {
#include "sandbox_calls.inc"
};
#define CALLS (sizeof calls / sizeof *calls)

static _Noreturn void fail(const char *what, const char *which)
{
    fprintf(stderr, "rules: %s: %s\n", which, what);
    exit(2);
}

#define RULES_MOST 4000
static struct sock_filter rules[RULES_MOST];
static unsigned short count;
static unsigned blocks; /* of a page that were read */

static void add(struct sock_filter rule)
{
    if (count == RULES_MOST)
        fail("more than this program has room for", "rules");
    rules[count++] = rule;
}

static void load(size_t offset)
{
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void answer(unsigned what) { add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what)); }

/* What follows is left out, so many instructions of it, unless the word loaded is `value`. */
static void unless(unsigned value, unsigned char left_out)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, left_out));
}

static void add_rule(unsigned number, unsigned what, const char *test, unsigned argument,
                     unsigned value)
{
    if (test == NULL) {
        unless(number, 1);
        answer(what);
        return;
    }
    bool bits = strcmp(test, "is") != 0;
    unless(number, bits ? 5 : 4);
    /* Little endian; what is tested are ints. */
    load(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
    if (bits)
        add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~value));
    if (strcmp(test, "beyond") == 0)
        add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
    else
        unless(bits ? 0 : value, 1);
    answer(what);
    load(offsetof(struct seccomp_data, nr));
}

static void add_named(const char *name, unsigned what, const char *test, unsigned argument,
                      unsigned value)
{
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0) {
            add_rule(calls[i].number, what, test, argument, value);
            return;
        }
    /* Not a call of this architecture, or newer than its headers. */
}

static void read_rule(char *line)
{
    char *name = strtok(line, " \t\n");
    for (; name != NULL && name[strlen(name) - 1] == ','; name = strtok(NULL, " \t\n")) {
        name[strlen(name) - 1] = 0;
        add_named(name, SECCOMP_RET_ALLOW, NULL, 0, 0);
    }
    if (name == NULL || *name == '#')
        return;
    unsigned what = SECCOMP_RET_ALLOW;
    unsigned argument = 0;
    unsigned value = 0;
    const char *test = NULL;
    char *word = strtok(NULL, " \t\n");
    if (word != NULL && strcmp(word, "kill") == 0) {
        what = SECCOMP_RET_KILL_PROCESS;
        word = strtok(NULL, " \t\n");
    } else if (word != NULL && strcmp(word, "error") == 0) {
        what = SECCOMP_RET_ERRNO | (unsigned)atoi(strtok(NULL, " \t\n"));
        word = strtok(NULL, " \t\n");
    }
    if (word != NULL && strcmp(word, "if") == 0) {
        argument = (unsigned)atoi(strtok(NULL, " \t\n"));
        test = strtok(NULL, " \t\n");
        value = (unsigned)strtoul(strtok(NULL, " \t\n"), NULL, 0);
        word = strtok(NULL, " \t\n");
    }
    if (word != NULL && *word != '#')
        fail("a word that is not understood", word);
    add_named(name, what, test, argument, value);
}

/* Of a page of documentation the blocks that begin with "# rules: NAME" for one of the names. */
static void read_page(char *text, const char *names)
{
    bool wanted = false;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        static const char begins[] = "# rules: ";
        if (strncmp(line, begins, sizeof begins - 1) == 0) {
            const char *name = line + sizeof begins - 1;
            const char *found = strstr(names, name);
            size_t length = strlen(name);
            wanted = found != NULL && (found == names || found[-1] == '+') &&
                     (found[length] == 0 || found[length] == '+');
            blocks += wanted;
        } else if (strncmp(line, "```", 3) == 0) {
            wanted = false;
        } else if (wanted) {
            read_rule(line);
        }
    }
}

static void read_list(char *path)
{
    /* Without a stream, whose buffer would be the process's first allocation. */
    static char text[256 * 1024];
    char *names = strchr(path, '#');
    if (names != NULL)
        *names++ = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (got < 0 || got == sizeof text - 1)
        fail(got < 0 ? strerror(errno) : "too long", path);
    text[got] = 0;
    close(file);
    if (names != NULL) {
        unsigned wanted = 1;
        for (const char *c = names; *c != 0; c++)
            wanted += *c == '+';
        blocks = 0;
        read_page(text, names);
        if (blocks != wanted)
            fail("not all of these rules are there", names);
        return;
    }
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        read_rule(line);
}

void rules_read(char *lists)
{
    load(offsetof(struct seccomp_data, arch));
    unless(ARCHITECTURE, 1);
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
    for (char *list; (list = strsep(&lists, ",")) != NULL;)
        read_list(list);
    answer(SECCOMP_RET_KILL_PROCESS);
}

void rules_apply(void)
{
    if (count == 0)
        return;
    struct sock_fprog program = {count, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        printf("this kernel gives no filters (%s): skipped\n", strerror(errno));
        exit(77);
    }
}

bool rules_scavenger_returns(void (*leaves_idle)(void))
{
    enum { TRIES = 60, LOOKS = 100 }; /* of 20 ms each */
    static size_t (*stats_of)(struct hakmem_stats *, size_t);
    static int (*set)(const char *, uint64_t);
    static const struct timespec rest = {0, 20000000};
    *(void **)&stats_of = dlsym(RTLD_DEFAULT, "hakmem_stats");
    *(void **)&set = dlsym(RTLD_DEFAULT, "hakmem_option_set");
    if (stats_of == NULL || set == NULL)
        return true;
    /* Again, as it may have come before `before` was read. */
    for (unsigned i = 0; i < TRIES; i++) {
        struct hakmem_stats before, now;
        set("keep_bytes", 0); /* what went back in vain counts no more */
        set("keep_bytes", UINT64_MAX);
        leaves_idle();
        stats_of(&before, sizeof before);
        for (unsigned look = 0; look < LOOKS; look++) {
            nanosleep(&rest, NULL);
            stats_of(&now, sizeof now);
            if (now.returned != before.returned)
                return true;
        }
    }
    return false;
}
