/* Processes that write their statistics and their heap profile again and again are killed, each at
 * a random instant. Each file is whole or not there.
 *
 *   killed [KILLS]
 *
 * The environment sets stats_file, profile_file and stats_signal 10; the files are in the current
 * folder. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST (1 << 20) /* bytes of a file */
#define LONGEST 20000  /* microseconds of a process */

static char text[MOST];

/* Of a file, as text; false where there is none. */
static bool read_file(const char *path)
{
    int file = open(path, O_RDONLY);
    size_t used = 0;
    ssize_t got = 1;
    while (file >= 0 && got > 0 && used < MOST - 1) {
        got = read(file, text + used, MOST - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    if (file >= 0)
        close(file);
    text[used] = 0;
    return file >= 0;
}

static const char *last_line(void)
{
    size_t length = strlen(text);
    if (length == 0 || text[length - 1] != '\n')
        return "(no end of line)";
    text[length - 1] = 0;
    const char *before = strrchr(text, '\n');
    return before != NULL ? before + 1 : text;
}

static unsigned wrong;

/* Whether there is one. */
static bool check(const char *path, const char *end, int kills)
{
    if (!read_file(path))
        return false;
    const char *found = last_line();
    if (strcmp(found, end) != 0) {
        fprintf(stderr, "%s after kill %d: expected '%s' as the last line, found '%s'\n", path,
                kills, end, found);
        wrong++;
    }
    unlink(path);
    return true;
}

static _Noreturn void write_for_ever(void)
{
    for (unsigned i = 0;; i++) {
        void *volatile p = malloc(i % 5000 + 1);
        raise(SIGUSR1);
        free(p);
    }
}

int main(int argc, char **argv)
{
    int kills = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 100;
    const char *stats = getenv("HAKMEM_STATS_FILE"), *profile = getenv("HAKMEM_PROFILE_FILE");
    char last_mapping[512], beside[512];
    unsigned whole = 0, half = 0;
    if (stats == NULL || profile == NULL)
        return 2;
    /* A profile ends with the list of mappings. */
    read_file("/proc/self/maps");
    snprintf(last_mapping, sizeof last_mapping, "%s", last_line());
    srandom(1);
    for (int i = 1; i <= kills; i++) {
        pid_t child = fork();
        if (child == 0)
            write_for_ever();
        if (child < 0)
            return 2;
        usleep((useconds_t)(random() % LONGEST));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        whole += check(stats, "# EOF", i);
        whole += check(profile, last_mapping, i);
        for (int file = 0; file < 2; file++) {
            snprintf(beside, sizeof beside, "%s.%d.tmp", file == 0 ? stats : profile, (int)child);
            half += unlink(beside) == 0;
        }
    }
    printf("%d processes killed: %u whole files, %u in the middle of one, %u files wrong\n", kills,
           whole, half, wrong);
    if (whole == 0 || half == 0) {
        fprintf(stderr, "expected some files, and some begun ones\n");
        return 1;
    }
    return wrong != 0;
}
