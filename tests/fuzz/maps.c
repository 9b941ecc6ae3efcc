/* /proc/self/maps as src/os/self_linux.c reads it: lists as the kernel writes them, whose answers
 * are known, and any bytes, for which the reader must end and stay within its buffer. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#include "bytes.h"
#include "os/lock.h"
#include "os/os.h"

#define FILE_NUMBER 12345
#define LINES_MOST 12

static const char *text; /* of the file */
static size_t length, given, read_most;
static unsigned interrupts; /* so many reads are, first */
static bool is_open, missing;

size_t os_page = 4096;
unsigned os_thread_id(void) { return 1; }
bool lock_none_held(void) { return true; }

void assertion_failed(const char *file, unsigned line, const char *function, const char *what)
{
    (void)file, (void)line, (void)function;
    MUST(false, "%s", what);
    __builtin_trap();
}

/* In the place of libc's (--wrap). */
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long first = va_arg(list, long);
    (void)first;
    char *buffer = va_arg(list, char *);
    if (number == SYS_readlinkat)
        buffer = va_arg(list, char *);
    size_t room = va_arg(list, size_t);
    va_end(list);
    switch (number) {
    case SYS_openat:
        errno = ENOENT;
        is_open = !missing;
        return missing ? -1 : FILE_NUMBER;
    case SYS_close:
        is_open = false;
        return 0;
    case SYS_read:
    case SYS_readlinkat:
        if (number == SYS_read && interrupts > 0) {
            interrupts--;
            errno = EINTR;
            return -1;
        }
        break;
    default:
        MUST(false, "system call %ld", number);
    }
    size_t got = length - given;
    got = got < room ? got : room;
    got = got < read_most ? got : read_most;
    memcpy(buffer, text + given, got);
    given += got;
    return (long)got;
}

/* Asks about p, with so much room for the answer. */
static enum os_mapped ask(uintptr_t p, char *line, size_t room)
{
    given = 0;
    errno = 4321;
    memset(line, 0x55, room);
    enum os_mapped found = os_mapping((const void *)p, line, room);
    MUST(errno == 4321, "errno is changed to %d", errno);
    MUST(memchr(line, '\0', room) != NULL, "an answer without end");
    MUST(!is_open, "the file stays open");
    MUST((found == OS_MAPPED_UNKNOWN) == missing, "answer %d", (int)found);
    return found;
}

/* ---- lists as the kernel writes them ---- */

static void known_list(struct bytes *bytes)
{
    static char list[LINES_MOST * 256];
    static struct {
        uintptr_t start, end;
        char answer[256];
    } lines[LINES_MOST];
    static const char *const names[] = {
        "", "[stack]", "/usr/lib/x.so", "/a b/c  d (deleted)", "[anon:x]", "/", "//deleted"};
    unsigned count = next_byte(bytes) % LINES_MOST;
    uintptr_t at = 0;
    size_t used = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned kind = next_byte(bytes);
        at += next_number(bytes, kind % 6) << 12;
        lines[i].start = at;
        at += (next_byte(bytes) + (uintptr_t)1) << 12;
        lines[i].end = at;
        const char *name = names[kind / 6 % 7];
        const char *rights = kind % 2 == 0 ? "rw-p" : "r-xp";
        int pad = name[0] == '\0' ? 0 : 12;
        used += (size_t)snprintf(list + used, sizeof list - used,
                                 "%08" PRIxPTR "-%08" PRIxPTR " %s %08x %02x:%02x %u %*s%s\n",
                                 lines[i].start, lines[i].end, rights, kind, kind % 9, kind % 5,
                                 kind * 1000, pad, "", name);
        snprintf(lines[i].answer, sizeof lines[i].answer, "%s%s%s", rights,
                 name[0] == '\0' ? "" : " ", name);
    }
    text = list;
    length = used;
    char answer[256];
    for (unsigned i = 0; i < count; i++) {
        const uintptr_t inside[] = {lines[i].start, lines[i].end - 1};
        for (unsigned k = 0; k < 2; k++) {
            enum os_mapped found = ask(inside[k], answer, sizeof answer);
            MUST(missing || found == OS_MAPPED, "%zx is not found in\n%s", inside[k], list);
            size_t end = strlen(answer); /* a blank may stand behind the rights */
            while (end > 0 && answer[end - 1] == ' ')
                answer[--end] = '\0';
            /* Of several blanks in a name one is left. */
            MUST(missing || strstr(lines[i].answer, "  ") != NULL ||
                     strcmp(answer, lines[i].answer) == 0,
                 "'%s', expected '%s'", answer, lines[i].answer);
        }
        bool taken = i + 1 < count && lines[i + 1].start == lines[i].end;
        MUST(missing || taken || ask(lines[i].end, answer, sizeof answer) == OS_NOT_MAPPED,
             "%zx is found in\n%s", lines[i].end, list);
    }
}

/* ---- any bytes ---- */

static void any_list(struct bytes *bytes)
{
    char answer[300];
    size_t room = next_byte(bytes) + 2;
    uintptr_t p = next_number(bytes, 8);
    text = (const char *)bytes->at;
    length = bytes->left;
    ask(p, answer, room);
    ask(0x1000, answer, 512 % room + 2);
    given = 0;
    memset(answer, 0x55, sizeof answer);
    os_program_path(answer, room);
    MUST(memchr(answer, '\0', room) != NULL, "a path without end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    unsigned flags = next_byte(&bytes);
    missing = flags % 32 == 31;
    interrupts = flags / 32;
    read_most = next_byte(&bytes) + 1;
    if (flags % 2 == 0)
        known_list(&bytes);
    else
        any_list(&bytes);
    return 0;
}
