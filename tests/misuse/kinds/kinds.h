/* What the kinds of misuse share: blocks among others, marks on the output, a judgement of bytes.
 *
 * A kind prints "before" ahead of the wrong act and "after" behind it. It then frees what it has
 * and allocates on, so that an allocator that looks later can find it, and returns what happened.
 */
#ifndef HAKMEM_TESTS_MISUSE_KINDS_H
#define HAKMEM_TESTS_MISUSE_KINDS_H

#include "../../stress/names.h"

#include <stdbool.h>
#include <stdint.h>

#define PAGE 4096
#define OWN 0x5a    /* what the program wrote to the block that it uses wrongly */
#define OTHERS 0x77 /* what it wrote to other blocks */

/* In which sizes a kind exists; its name then ends in _small and so on. */
enum { ONE = 0, SMALL = 1, MID = 2, LARGE = 4, HUGE = 8, ALL = 15, FEW_BYTES = SMALL | MID };

struct kind {
    const char *name;
    const char *(*run)(void); /* returns how it ended, a word of `outcomes` in main.c */
    unsigned sizes;
    long number;
    const char *right; /* the endings that are right: "ended" is by a signal */
    const char *what;
};

/* Each ended by a null name. */
extern const struct kind kinds_of_writes[], kinds_of_reads[], kinds_of_frees[], kinds_of_calls[];

/* Of the kind that runs. */
extern long number;
extern size_t bytes;    /* of the block */
extern size_t edge;     /* bytes at both ends of a block that have content */
extern unsigned before; /* blocks allocated before the one used wrongly, and after it */
extern unsigned churn;  /* blocks that are allocated and freed at the end */

void say(const char *line);
void say_before(void);
void say_after(void);
/* The wrong act. It may declare what it returns. */
#define WRONGLY(...) \
    say_before();    \
    __VA_ARGS__;     \
    say_after()

/* malloc, with this content; ends the process if there is no memory. */
char *get(int content);

/* Whether p is one of the last GOT_MOST blocks that it returned. */
#define GOT_MOST 512
bool was_got(const char *p);

/* With neighbours in use, which have content. */
char *get_among(void);
/* With a neighbour as near as there is: at a higher address, or at a lower one. */
char *get_below(void);
char *get_above(void);
/* "damaged" if a neighbour's content has changed, else "unnoticed". */
const char *neighbours(void);
void free_neighbours(void);
/* Allocates and frees until even a long quarantine has let go of what was freed before. */
void go_on(void);
/* The neighbours are freed too. Returns what neighbours() did before. */
const char *finish(void *block);

/* Changes every byte. */
void change(char *from, size_t count);
/* "old", "another's", "zeros" or "other": what the program reads there. */
const char *look_at(const char *from, size_t count);
/* Allocates many blocks and frees them, with `owned`, a block or null, then does as finish. "twins"
 * if two of them share memory, "chosen" if one of them is `wished`, else "apart". */
const char *take_many(char *owned, const char *wished);
/* Null if no library of the process has this function. */
void *function(const char *name);

#endif
