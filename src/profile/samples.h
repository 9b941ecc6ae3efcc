/* Sampled blocks that are in use, and the sites that allocated them: by call stack, and by the name
 * that the program gave the call, if any. Each site has three tallies, which are estimates of what
 * all blocks of the site are together. Thread safe; the caller holds a cache's lock or its like
 * (os/lock.h), and no lock of a higher rank.
 *
 * Each sample passes a probe for tracers (base/atomic.h): otel_memory:alloc has the block, the
 * bytes requested, and the bytes that the sample stands for; otel_memory:free has the block. */
#ifndef HAKMEM_PROFILE_SAMPLES_H
#define HAKMEM_PROFILE_SAMPLES_H

#include "base/memory.h"
#include "base/watch.h"

#define FRAMES_MOST 64
#define SITE_NAME_MOST 200 /* bytes of a name; what is longer is cut */

struct tally { /* each number: atomic */
    uint64_t samples;
    double blocks, bytes; /* as requested */
    double variance; /* of the estimate of the bytes: the sum of w (w - 1) n n over the samples */
};

struct site {
    struct site *next;   /* of its bucket; constant */
    uint64_t hash;       /* of its frames and name; constant */
    struct tally total;  /* allocated since the start; these three: lock: profile */
    struct tally live;   /* in use */
    struct tally peak;   /* in use when all sites together had most */
    struct tally lately; /* the same, since samples_watch */
    uint64_t since;      /* as of struct origin when it was made; constant */
    uint64_t depth;      /* constant, as the frames are, and the name's bytes */
    uint64_t name_bytes;
    uintptr_t frames[]; /* innermost first: where the call is, not where it returns; then the name,
                           which a zero ends */
};

/* Of all sampled blocks that are in use: sums over the samples, by which it can be estimated how
 * much of the blocks' memory was requested. With w a sample's weight, n the bytes requested and b
 * those of the block. The last three give the error of the estimate (sheet/profile.h). */
struct fill {
    uint64_t samples;
    double requested, blocks; /* w n, w b */
    double nn, nb, bb;        /* w (w - 1) n n, and so on */
};

/* What the program did with blocks that were sampled, since a moment: how many it allocated, and
 * the most bytes that it had in use at once. Estimates, and exact where every block is a sample. */
struct course {
    double most, blocks; /* lock: profile; these three are written in one piece */
    double snapped;      /* bytes that were in use when the sites' peaks were noted */
    size_t missed;       /* blocks without a sample, allocated during a fork; atomic */
};

/* Where a block is allocated. */
struct origin {
    const char *name; /* the program's, or empty; copied */
    uint64_t since; /* os_nanoseconds, where code of no module called, as that may change; else 0 */
    unsigned depth;
    uintptr_t frames[FRAMES_MOST]; /* as in a site */
};

/* Whether any block ever was noted. Atomic. */
extern bool profile_used HIDDEN;

/* Makes the tables; false without memory. */
bool samples_start(void);

/* Notes a block of `block` bytes, of which n were requested, that stands for `weight` blocks. Null
 * as origin: it is no part of the program. False where nothing is noted: there is no memory, or it
 * is too much. */
bool samples_add(const void *p, size_t n, size_t block, double weight, const struct origin *from);

/* Now n bytes of it are requested, and the block has so many bytes, if that is more than before. */
void samples_resize(const void *p, size_t n, size_t block);

/* A block came from the reserve while a profile was on: a fork holds all locks. No lock is held. */
void samples_miss(void);

/* From now on the peak is counted anew, beside that of the whole process. */
void samples_watch(void);

/* In the child of a fork, which has one thread: what its parent did does not count. */
void samples_fork_child(void);

/* Since samples_watch, or without one since the process began. `most` does not have what is in use
 * now and was not more before. */
struct course samples_course(void);
bool samples_watched(void);

/* It is freed; false if it was not noted. What Python frees because it ends stays in the tallies of
 * what is in use: else a profile that is written afterwards would not have it. */
bool samples_forget(const void *p);

/* The process ends: so does all that is freed from now on. */
void samples_end(void);

/* The site that allocated p, a sampled block in use; null where it is none, or another thread is at
 * work here. */
const struct site *samples_site_of(const void *p);

/* All sites, in any order: the first after this one, or null; and after the last. Sites are never
 * freed. */
const struct site *samples_site_after(const struct site *site);

/* Empty where the program gave none. */
static inline const char *site_name(const struct site *site)
{
    return (const char *)&site->frames[site->depth];
}

/* A tally while other threads may change it: each number was right at some time. */
static inline struct tally tally_read(const struct tally *tally)
{
    struct tally copy;
    words_copy_shared(&copy, tally, sizeof copy / sizeof(uint64_t));
    return copy;
}

/* Samples that found no room, and bytes of memory for all this, and for what is noted (noted.h). */
size_t samples_lost(void);
size_t samples_bytes(void);

/* ---- marks ----
 *
 * Moments of the program's life that have a name (hakmem_mark), with a profile or without. Of each
 * of the first MARKS_MOST names it is known how often and when (base/watch.h). */

/* Counts one more. Lock: cacheless. */
void mark_count(const char *name);

/* Copies the mark at this place, from 0 on; false where there is none. Any thread: each number was
 * right at some time. */
bool mark_read(unsigned place, struct watch_mark *copy);

#endif
