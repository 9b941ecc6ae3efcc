#include "sheet/own.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "os/os.h"
#include "sheet/calls.h"
#include "sheet/kernel.h"

#define SELF "self"

static int number_of(enum ending ending)
{
    return ending == EXIT_NONSENSE ? EAGAIN : ENOMEM; /* it changed too fast, or no memory */
}

/* Looks until little is left to explain, and keeps the best text in `best`. */
static int look(struct target *t, enum form form, char *best, size_t room, size_t *length)
{
    struct why why;
    uint64_t least = UINT64_MAX;
    int error = EAGAIN;
    for (unsigned n = 0; n < LOOKS_MOST; n++) {
        error = kernel_maps(t, SELF);
        if (error != 0)
            break;
        struct heap *heap = room_get(&t->room, sizeof *heap);
        target_allow(t);
        if (heap == NULL || !target_begin(t))
            return ENOMEM;
        if (!tables_read(t, (uint64_t)(uintptr_t)&hakmem_watch, &heap->tables, &why) ||
            !heap_read(t, heap, &why)) {
            error = number_of(why.ending);
            continue;
        }
        const struct totals totals = totals_of(t, heap);
        uint64_t unexplained =
            (uint64_t)(totals.unexplained < 0 ? -totals.unexplained : totals.unexplained);
        if (unexplained < least) {
            least = unexplained;
            *length = sheet_print(form, heap, &totals, best, room);
        }
        if (unexplained <= little_of(t))
            break;
    }
    return least != UINT64_MAX ? 0 : error;
}

static int write_all(int file, const char *text, size_t length)
{
    while (length > 0) {
        long done = call_write(file, text, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        text += done;
        length -= (size_t)done;
    }
    return 0;
}

int sheet_write_own(int file, enum form form)
{
    struct room room = {0};
    struct target t;
    size_t length = 0;
    if (os_page != PAGE)
        return ENOTSUP;
    char *text = room_get(&room, PRINT_MOST);
    int error = text == NULL ? ENOMEM : kernel_open(&t, SELF);
    if (error == 0) {
        error = look(&t, form, text, PRINT_MOST, &length);
        target_forget(&t);
        kernel_close(&t);
    }
    if (error == 0)
        error = write_all(file, text, length);
    room_release(&room);
    return error;
}

int sheet_replace_own(const char *path, enum form form)
{
    struct room room = {0};
    size_t most = strlen(path) + sizeof ".4294967295.tmp";
    char *beside = room_get(&room, most);
    if (beside == NULL)
        return ENOMEM;
    struct text t;
    text_init(&t, beside, most);
    text_add(&t, path);
    text_add(&t, ".");
    text_add_number(&t, (uint64_t)getpid());
    text_add(&t, ".tmp");
    call_unlink(beside); /* one that a killed process of this number left */
    int file = call_open(beside, O_WRONLY | O_CREAT | O_EXCL);
    int error = file < 0 ? errno : sheet_write_own(file, form);
    if (file >= 0 && call_close(file) != 0 && error == 0)
        error = errno;
    if (error == 0 && call_rename(beside, path) != 0)
        error = errno;
    if (error != 0 && file >= 0)
        call_unlink(beside);
    room_release(&room);
    return error;
}
