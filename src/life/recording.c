#include "life/recording.h"

#include <errno.h>

#include "base/policy.h"
#include "base/text.h"
#include "front/cache.h"
#include "front/owners.h"
#include "life/profiling.h"
#include "os/lock.h"
#include "os/os.h"
#include "profile/samples.h"
#include "record/paths.h"

/* Milliseconds that a process waits at its end for the recorder to read which files it had in
 * memory. */
#define RECORDER_END_MS 500

static char folder[PATH_OPTION_MOST]; /* of the ring, while there is one */

/* ---- blocks that are left out ---- */

size_t unnoted_count;
static const void *unnoted[64]; /* atomic */

/* Where there is no room, its free is that of an unknown block. */
COLD void unnoted_add(const void *p)
{
    unnoted_forget(p); /* a call that is part of another one may have noted it */
    for (unsigned i = 0; p != NULL && i < sizeof unnoted / sizeof unnoted[0]; i++) {
        const void *nothing = NULL;
        if (__atomic_compare_exchange_n(&unnoted[i], &nothing, p, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            add_relaxed(&unnoted_count, 1);
            return;
        }
    }
}

SLOW bool unnoted_find(const void *p)
{
    for (unsigned i = 0; p != NULL && i < sizeof unnoted / sizeof unnoted[0]; i++) {
        const void *one = p;
        if (__atomic_compare_exchange_n(&unnoted[i], &one, NULL, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            sub_relaxed(&unnoted_count, 1);
            return true;
        }
    }
    return false;
}

static void unnoted_clear(void)
{
    for (unsigned i = 0; i < sizeof unnoted / sizeof unnoted[0]; i++)
        unnoted_forget(load_relaxed(&unnoted[i]));
}

/* ---- begin and end ---- */

static int start(const char *where, unsigned parent)
{
    if (ring != NULL)
        return EBUSY;
    if (!paths_start())
        return ENOMEM;
    int error = ring_open(where, parent);
    if (error != 0)
        return error;
    text_of(folder, sizeof folder, "%s", where);
    if (!heap_close(CLOSED_RECORDED, true)) {
        ring_leave();
        return ENOMEM;
    }
    return 0;
}

COLD int recording_start(const char *where)
{
    struct ring_head *before = load_acquire(&ring);
    if (before != NULL && load_relaxed(&before->stop) != 0)
        recording_lost(before, true);
    if (!heap_mode_enter(true))
        return EBUSY;
    if (ring == NULL) { /* what an earlier recording left */
        paths_forget();
        unnoted_clear();
    }
    int error = start(where, 0);
    lock_release(&cacheless_lock);
    return error;
}

COLD void recording_lost(struct ring_head *head, bool gone)
{
    if (head != NULL && load_acquire(&ring) == head && load_relaxed(&head->stop) == 0)
        add_relaxed(&head->lost, 1);
    if (!gone || !heap_mode_enter(false))
        return;
    if (ring == head && (head == NULL || ring_is_mine(head))) {
        heap_close(CLOSED_RECORDED, false);
        if (head != NULL)
            store_release(&head->state, RING_ENDED);
        ring_leave();
    }
    lock_release(&cacheless_lock);
}

static void complain(const char *where, int error)
{
    char line[PATH_OPTION_MOST + 128];
    struct text t = text_of(line, sizeof line, "hakmem: record: %.*s: ", PATH_OPTION_MOST, where);
    text_add_error(&t, error);
    text_add(&t, ": nothing is recorded\n");
    os_print_error(t.start, t.used);
}

COLD void recording_begin(void)
{
    int error = recording_start(record_path);
    if (error != 0 && error != ENOENT) /* who asked has ended */
        complain(record_path, error);
}

/* ---- lines of text ---- */

/* As those of scripts are (record/ring.h). */
static void write_line(struct tape *tape, const struct text *t)
{
    uintptr_t words[PACKED_WORDS];
    unsigned count = tape_pack(t->start, t->used, words);
    tape_write(tape, &(struct taped){.kind = EVENT_PATH, .bytes = count, .frames = words});
}

static void write_mark(const char *name)
{
    char line[sizeof "mark " + MARK_NAME];
    struct text t = text_of(line, sizeof line, "mark %.*s", MARK_NAME - 1, name);
    write_line(&tape_common, &t);
}

COLD void recording_mark(const char *name)
{
    if (*name == '\0' || !lock_enter(&cacheless_lock))
        return;
    mark_count(name);
    struct ring_head *head = load_acquire(&ring);
    if (head != NULL && ring_is_mine(head) && load_relaxed(&head->stop) == 0)
        write_mark(name);
    lock_release(&cacheless_lock);
}

/* ---- forks and ends ---- */

/* So that the child has nothing of the parent's. Not where a signal handler that interrupted the
 * writing forks. */
COLD void recording_fork_prepare(struct cache *mine)
{
    if (!thread_is_within(THREAD_RECORDS) && mine != NULL && mine->sampler != NULL)
        tape_flush(&mine->sampler->tape);
}

/* Without a lock: there is no other thread, and a signal handler may have forked. */
COLD void recording_fork_child(void)
{
    if (ring == NULL)
        return;
    unsigned parent = ring->process;
    bool stopped = load_relaxed(&ring->stop) != 0;
    ring_leave();
    paths_forget();
    int error = stopped ? 0 : ring_open(folder, parent);
    if (error != 0 && error != ENOENT)
        complain(folder, error); /* the next call ends it */
}

/* Its name, which it may have got after its first event. */
static void write_thread_name(struct tape *tape)
{
    char line[64], name[16];
    os_thread_named(name);
    if (*name == '\0')
        return; /* not known, or empty: then one that the recorder saw before is better */
    struct text t = text_of(line, sizeof line, "thread %u %.*s", tape->chunk->thread,
                            (int)sizeof name - 1, name);
    write_line(tape, &t);
}

COLD void recording_thread_ends(struct cache *cache)
{
    if (cache->sampler == NULL)
        return;
    struct tape *tape = &cache->sampler->tape;
    /* Not of an earlier recording. */
    if (tape->chunk != NULL && tape->ring == load_acquire(&ring))
        write_thread_name(tape);
    tape_flush(tape);
}

COLD void recording_end(void)
{
    struct ring_head *head = load_acquire(&ring);
    if (head == NULL || !ring_is_mine(head))
        return;
    store_release(&head->state, RING_ENDING);
    for (unsigned waited = 0; load_relaxed(&head->stop) == 0 && waited < RECORDER_END_MS &&
                              load_acquire(&head->seen) < RING_ENDING;
         waited++)
        os_let_pass(1);
}
