/* When a thread's stacks are closed to frees, because much lies idle that nobody else would give
 * back. Pure functions; life/visits.c counts. */
#ifndef HAKMEM_LEARN_IDLENESS_H
#define HAKMEM_LEARN_IDLENESS_H

#include "learn/laws.h"

/* What of the memory that lies idle the program takes again; in bytes. */
struct idleness {
    size_t ebb;      /* the most that lay idle, or while that falls the least */
    size_t returns;  /* the most, of which it then took half again */
    size_t gone;     /* of its outflow, what was dealt with */
    uint8_t in_vain; /* looks in a row that gave nothing back */
    bool falls;
};
static_assert(LAW_IN_A_ROW <= UINT8_MAX, "fits in_vain");

/* Bytes that may lie idle before the stacks are closed. `most`: what was in use at once. */
static inline size_t idleness_unseen(size_t most) { return LAW_LITTLE + most / LAW_SMALL_PART; }

/* Whether `bytes` are more than may lie idle. For small blocks it may be clearly more than what is
 * in use, `live`: a program that frees many of them fills stack after stack, and so comes to the
 * slow path anyhow. `huge`: more than may lie idle is of huge blocks. */
static inline bool idleness_closes(size_t bytes, size_t live, size_t unseen, bool huge)
{
    return bytes > (huge ? unseen : larger(unseen, live * LAW_CLEARLY));
}

/* Whether closed stacks stay so: what a rest gives back at its pace is not yet nearly all. */
static inline bool idleness_keeps_closed(size_t bytes, size_t most)
{
    return bytes > LAW_LITTLE + most / LAW_KEEP_PART;
}

/* Counts that so much lies idle now. A program that frees and takes the same again and again most
 * likely does it once more: near the end of what it freed last time is soon enough. */
static inline void idleness_follow(struct idleness *i, size_t bytes, size_t unseen)
{
    if (i->falls) {
        i->falls = bytes <= i->ebb + unseen;
        i->ebb = i->falls ? smaller(i->ebb, bytes) : bytes;
    } else if (bytes < i->ebb / LAW_CLEARLY && i->ebb > unseen) {
        i->returns = i->ebb;
        i->ebb = bytes;
        i->falls = true;
    } else {
        i->ebb = larger(i->ebb, bytes);
    }
}

/* Whether it is less than what the program took again last time. */
static inline bool idleness_comes_back(const struct idleness *i, size_t bytes)
{
    return bytes <= i->returns - i->returns / LAW_SMALL_PART;
}

/* What went back does not return. */
static inline void idleness_returned(struct idleness *i, size_t bytes)
{
    i->ebb = excess(i->ebb, bytes);
    i->returns = excess(i->returns, bytes);
    i->in_vain = 0;
}

/* A look that gave nothing back, until another does. */
static inline void idleness_looked(struct idleness *i) { i->in_vain += i->in_vain < LAW_IN_A_ROW; }

/* Whether looking does not help: the kernel refuses, say because the program's memory is locked. */
static inline bool idleness_in_vain(const struct idleness *i) { return i->in_vain == LAW_IN_A_ROW; }

#endif
