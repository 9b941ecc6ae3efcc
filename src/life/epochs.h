/* For each kind of free memory, how long it is kept and how much of it. The caller is purge.c, with
 * its lock. */
#ifndef HAKMEM_LIFE_EPOCHS_H
#define HAKMEM_LIFE_EPOCHS_H

#include "base/defs.h"
#include "front/journal.h"
#include "learn/retention.h"

/* One kind of free memory. */
struct kind {
    enum journal_subject subject; /* constant */
    struct retention learned;
    size_t epoch; /* bytes freed meanwhile, after which it goes back */
    size_t began; /* the allocation clock when the epoch began */
    size_t ripe;  /* the same of the last one: what is free since then lay idle for an epoch */
    size_t late;  /* the time of day when it ends at the latest */
    size_t seen;  /* dirty when it was noted, in the kind's own unit; atomic */
    size_t debt;  /* found idle and not yet given back, in the same unit */
};

extern struct kind dirty_pages HIDDEN;
extern struct kind dirty_slices HIDDEN;
extern struct kind dirty_huge HIDDEN;

/* Whether the kind's epoch has ended; and what then is to be done: what lay idle is owed, the next
 * epoch is learned and begins. */
bool epoch_ended(const struct kind *kind);
void pages_epoch_ends(void);
void slices_epoch_ends(void);
void huge_epoch_ends(void);

/* After a rest what was dirty before it, and is still, lay idle. The first needs no lock. */
void note_what_is_dirty(void);
void owe_what_was_dirty(void);

/* Begins to learn anew, and owes nothing. */
void epochs_anew(void);

/* What goes back now and is wanted again until the clock says that went back too soon
 * (retention_soon). */
size_t too_soon_until(const struct kind *kind);

/* Whether more is kept than may be. Needs no lock. */
bool keeps_too_much(void);

/* Gives back at most `most` bytes of slices and huge blocks: of what is beyond what may be kept, or
 * of what is owed. Returns how many. */
size_t give_back_beyond(size_t most);
size_t give_back_owed(size_t most);

/* Whether anything is owed. */
bool owes(void);

/* Bytes that may be freed before a number that was set is passed, of slices at most `most`. Needs
 * no lock. */
size_t headroom(size_t most);

/* The shortest epoch of a kind of which there is any. */
size_t shortest_epoch(void);

#endif
