/* What one thread of the stress test does: a sequence of operations on its slots and on the cells
 * of the exchange, by which blocks pass to other threads. */
#ifndef HAKMEM_TESTS_WORK_H
#define HAKMEM_TESTS_WORK_H

#include "block.h"

#include <stdatomic.h>

/* Shared by all threads. The cells and the slots hold one record each at all times; a wandering
 * block is the swap of two records. */
struct exchange {
    struct record *_Atomic *cells;
    size_t n;
    size_t large_limit;         /* bytes */
    _Atomic size_t large_bytes; /* weight of all records; may pass the limit for a moment */
};

/* A seat is what successive threads of the same number inherit from each other. */
struct seat {
    struct worker worker;
    struct randomness random;
    struct exchange *exchange;
    struct record **slots;
    size_t n;
    size_t smallest, largest; /* bytes of new blocks; 0: the mixture of all sizes */
    uint64_t received;        /* blocks that came from other threads */
    uint64_t calls;           /* calls of the allocator, without malloc_usable_size */
    char apart[64];           /* seats of two threads share no cache line */
};

/* Memory for both, of empty records; ends the program when there is none. */
void exchange_make(struct exchange *exchange, size_t cells, size_t large_limit);
void seat_make(struct seat *seat, unsigned number, size_t slots, struct exchange *exchange);

/* The same operations for the same seed, seat and generation, as far as they don't depend on what
 * the exchange gives. */
void seat_work(struct seat *seat, uint64_t operations);

/* One operation each: a block for a slot that has none; the end of a slot's block, if it has one;
 * the records of a slot and of a cell change places, and what comes is checked. */
void slot_fill(struct seat *seat, struct record *slot);
void slot_free(struct seat *seat, struct record *slot);
void slot_swap(struct seat *seat, struct record **slot, size_t cell);

/* Frees what the slots hold. `me` may be another thread than the seat's. */
void seat_clear(struct seat *seat, const struct worker *me);

/* Frees what the exchange holds. */
void exchange_clear(struct exchange *exchange, const struct worker *me);

#endif
