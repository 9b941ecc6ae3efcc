/* What was learned last, and why, to show what the library does. Kept only if the option learn_log
 * is on. Thread safe. */
#ifndef HAKMEM_FRONT_JOURNAL_H
#define HAKMEM_FRONT_JOURNAL_H

#include "base/defs.h"
#include "learn/capacity.h"

#define JOURNAL_MOST 256 /* the newest */

enum journal_subject {
    JOURNAL_STACK,
    JOURNAL_COMPACTS, /* a class begins to compact */
    JOURNAL_COMPACTED /* and ends */
};

struct journal_entry {
    enum journal_subject subject;
    enum capacity_reason why; /* of a stack */
    unsigned thread;          /* of a stack or a class, the kernel's number */
    size_t size;              /* of a stack or a class: bytes of a block */
    size_t from, to;          /* blocks of a stack */
    size_t clock;             /* bytes freed until then, as the allocation clock has them */
};

/* Whether lines are wanted. */
static inline bool journal_open(void) { return unlikely(policy.learn_log != 0); }

/* The caller holds a lock that a fork takes. */
void journal_add(const struct journal_entry *entry);

/* That a class began to compact in the shard, or ended, if it did `before` and does not, or the
 * other way. */
void journal_compaction(unsigned shard, unsigned cls, bool before);

/* How many lines were ever written; and one of them, counted from 0. False if it is gone, or can't
 * be read without waiting. */
size_t journal_count(void);
bool journal_read(size_t number, struct journal_entry *entry);

/* In a fork's child: a thread at the process's end may have been reading, without any other lock.
 */
void journal_fork_child(void);

#endif
