/* Sets of spans, against an array. A reader asks them about addresses that another process has
 * chosen. */
#include "unit.h"

#include <stdbool.h>

#include "sheet/target.h"

#define KEYS 4000
#define SPREAD 20000

static bool taken[SPREAD];

static bool any_taken(uint64_t start, uint64_t end)
{
    for (uint64_t at = start; at < end; at++)
        if (taken[at])
            return true;
    return false;
}

static void as_an_array(void)
{
    static uint32_t number_of[SPREAD];
    struct room room = {0};
    struct spans spans;
    spans_start(&spans, &room);
    for (uint32_t i = 0; i < KEYS; i++) {
        uint64_t start = next_random() % (SPREAD - 16);
        uint64_t end = start + 1 + next_random() % 15;
        bool fits = !any_taken(start, end);
        EXPECT_EQUAL(spans_meet(&spans, start, end), any_taken(start, end));
        EXPECT_EQUAL(spans_add(&spans, start, end, i), fits);
        for (uint64_t at = start; fits && at < end; at++)
            taken[at] = true;
        if (fits)
            number_of[start] = i;
    }
    uint64_t at = 0;
    size_t sum = 0;
    for (const struct span *span = spans_from(&spans, 0); span != NULL;
         span = spans_from(&spans, span->end)) {
        EXPECT(span->start >= at && span->end > span->start);
        EXPECT_EQUAL(span->number, number_of[span->start]);
        sum += (size_t)(span->end - span->start);
        at = span->end;
    }
    for (size_t i = 0; i < SPREAD; i++)
        sum -= taken[i];
    EXPECT_EQUAL(sum, 0);
    EXPECT(!spans_add(&spans, UINT64_MAX, 0, 0));
    EXPECT(!room.short_of);
    room_release(&room);
}

/* The ranks that a set draws, if it begins with this. */
struct drawn {
    uint64_t rank;
    uint32_t turn;
};

static int by_rank(const void *a, const void *b)
{
    const struct drawn *left = a;
    const struct drawn *right = b;
    return left->rank > right->rank ? -1 : left->rank < right->rank;
}

static unsigned height_of(const struct span *span)
{
    unsigned left = span != NULL ? height_of(span->left) : 0;
    unsigned right = span != NULL ? height_of(span->right) : 0;
    return span == NULL ? 0 : 1 + (left > right ? left : right);
}

/* Who knew what is drawn could choose addresses that make the tree a list. */
static unsigned height_when_ranks_are_foreseen_from(uint64_t chance, uint64_t begins_with)
{
    static struct drawn drawn[KEYS];
    static uint64_t addresses[KEYS];
    struct room room = {0};
    struct spans spans;
    spans_start(&spans, &room);
    spans.chance = chance;
    for (uint32_t i = 0; i < KEYS; i++)
        EXPECT(spans_add(&spans, 2 * i, 2 * i + 1, 0));
    for (uint32_t i = 0; i < KEYS; i++)
        drawn[i] = (struct drawn){spans_from(&spans, 2 * i)->rank, i};
    qsort(drawn, KEYS, sizeof *drawn, by_rank);
    for (uint64_t i = 0; i < KEYS; i++)
        addresses[drawn[i].turn] = 2 * i;
    room_release(&room);
    spans_start(&spans, &room);
    spans.chance = begins_with;
    for (uint32_t i = 0; i < KEYS; i++)
        EXPECT(spans_add(&spans, addresses[i], addresses[i] + 1, 0));
    unsigned height = height_of(spans.root);
    room_release(&room);
    return height;
}

static void nobody_foresees(void)
{
    struct room room = {0};
    struct spans spans;
    spans_start(&spans, &room);
    EXPECT_EQUAL(height_when_ranks_are_foreseen_from(0, 0), KEYS); /* the attack is one */
    EXPECT(height_when_ranks_are_foreseen_from(0, spans.chance) < KEYS / 20);
}

int main(void)
{
    as_an_array();
    nobody_foresees();
    puts("2 passed, 0 failed");
    return 0;
}
