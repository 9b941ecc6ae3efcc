/* The file that the player reads: the calls of a recorded process, made ready. Numbers are in the
 * machine's byte order. python/hakmem/ops.py writes it; the two belong to one version.
 *
 * In the file come the head, the threads, the epochs, and the operations, thread after thread. */
#ifndef REPLAY_OPS_H
#define REPLAY_OPS_H

#include <assert.h>
#include <stdint.h>

#define OPS_MAGIC "hakmem-o"
#define OPS_FORMAT 1

struct ops_head {
    char magic[8];
    uint32_t format;
    uint32_t threads, epochs;
    uint32_t slots;                         /* places that hold the address of a block */
    uint64_t threads_at, epochs_at, ops_at; /* bytes from the start of the file */
    uint64_t ops;
};

/* The first is the process's first one. */
struct ops_thread {
    uint64_t first, count; /* operations */
};

/* Operations of one epoch of different threads take place in any order, but for those with one
 * block. */
struct ops_epoch {
    uint64_t time;  /* ns from the begin of the recording to its last operation */
    uint32_t parts; /* threads that have a part in it, at least one */
    uint32_t unused;
};

struct op {
    uint32_t slot;
    uint32_t kind : 4;   /* an enum op_kind */
    uint32_t align : 6;  /* its logarithm */
    uint32_t touch : 22; /* how many pages of the block are written to; OPS_TOUCH_ALL */
    uint64_t size;       /* bytes */
};
static_assert(sizeof(struct op) == 16, "as ops.py writes it");
#define OPS_TOUCH_ALL ((1u << 22) - 1)

enum op_kind {
    OP_EPOCH,  /* `slot`: what follows is of this epoch. A thread's first is one */
    OP_MALLOC, /* with an alignment, if `align` is not 0 */
    OP_CALLOC,
    OP_FREE,
    OP_REALLOC, /* the block of the slot, or that which was taken */
    OP_TAKE,    /* the block of the slot, for the realloc that follows: its block goes elsewhere */
    OP_START,   /* `slot`: the thread's number */
    OP_END,     /* waits for the end of that thread */
    OP_KINDS,
};

/* What the player writes into a file of this size for so many epochs. */
struct result_head {
    uint64_t done;   /* 1: all was played */
    uint64_t time;   /* ns from the first operation to the last */
    uint64_t cpu;    /* ns of processor time */
    uint64_t faults; /* of pages */
    uint64_t failed; /* allocations */
    uint64_t unused[3];
};

struct result_epoch {
    uint64_t time;     /* ns from the first operation to the end of the epoch */
    uint64_t resident; /* bytes of anonymous memory then */
};

#endif
