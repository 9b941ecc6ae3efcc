/* Limits for what each process of a run may use, and what one has used of them. */
#ifndef HAKMEM_LOOK_BUDGETS_H
#define HAKMEM_LOOK_BUDGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_BUDGET UINT64_MAX

struct budgets {
    uint64_t peak;        /* bytes in use at once */
    uint64_t leaked;      /* bytes that are lost, or lost through others, at the end */
    uint64_t allocations; /* calls */
    bool any;             /* of these is set */
    bool all;             /* the reporter hears of the program though nothing is exceeded */
};

/* From the user's words for them, with commas between, and "-" where one is not set: sizes such as
 * 200M, and a number such as 1e6. A fourth word is "all", or anything else. False, and the option
 * whose word is wrong. */
bool budgets_read(const char *words, struct budgets *budgets, const char **wrong);

/* As numbers, in the same way; what the reporter reads. */
void budgets_print(char *text, size_t room, const struct budgets *budgets);

/* What a process used, of the same three. */
static inline bool budgets_exceeded(const struct budgets *budgets, const struct budgets *used)
{
    return used->peak > budgets->peak || used->allocations > budgets->allocations ||
           (budgets->leaked != NO_BUDGET && used->leaked > budgets->leaked);
}

#endif
