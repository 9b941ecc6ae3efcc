#include "budgets.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MOST 1e18

/* After a number: K, KB or KiB and so on, which are powers of 1024, or B; a space may come before.
 * Returns what it stands for, 0 where it is none. */
static double unit_of(const char *text)
{
    static const char units[] = "KMGT";
    while (*text == ' ')
        text++;
    if (*text == 0 || strcasecmp(text, "b") == 0)
        return 1;
    const char *found = strchr(units, toupper((unsigned char)*text++));
    if (found == NULL)
        return 0;
    if (*text == 'i')
        text++;
    if (strcasecmp(text, "b") == 0)
        text++;
    return *text == 0 ? (double)((uint64_t)1 << 10 * (found - units + 1)) : 0;
}

/* A word of the user; changes nothing where it is "-", and is false where it is wrong. */
static bool number_read(const char *word, bool is_size, uint64_t *number)
{
    char *end;
    if (strcmp(word, "-") == 0)
        return true;
    double value = strtod(word, &end);
    double unit = is_size ? unit_of(end) : *end == 0;
    if (!isdigit((unsigned char)*word) || unit == 0 || !(value * unit <= NUMBER_MOST))
        return false;
    *number = (uint64_t)(value * unit);
    return true;
}

bool budgets_read(const char *words, struct budgets *budgets, const char **wrong)
{
    *budgets = (struct budgets){NO_BUDGET, NO_BUDGET, NO_BUDGET, false, false};
    struct {
        const char *option;
        uint64_t *number;
    } all[] = {{"--max-peak", &budgets->peak},
               {"--max-leaked", &budgets->leaked},
               {"--max-allocations", &budgets->allocations}};
    char *copy = strdup(words), *left = copy;
    *wrong = NULL;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && *wrong == NULL; i++) {
        const char *word = left != NULL ? strsep(&left, ",") : "";
        if (!number_read(word, all[i].number != &budgets->allocations, all[i].number))
            *wrong = all[i].option;
        budgets->any |= *all[i].number != NO_BUDGET;
    }
    budgets->all = left != NULL && strcmp(left, "all") == 0;
    free(copy);
    return *wrong == NULL;
}

void budgets_print(char *text, size_t room, const struct budgets *budgets)
{
    const uint64_t all[] = {budgets->peak, budgets->leaked, budgets->allocations};
    size_t used = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && used < room; i++) {
        const char *comma = i > 0 ? "," : "";
        used += (size_t)(all[i] == NO_BUDGET
                             ? snprintf(text + used, room - used, "%s-", comma)
                             : snprintf(text + used, room - used, "%s%" PRIu64, comma, all[i]));
    }
}
