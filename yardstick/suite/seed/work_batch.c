/*
 * Rows of one thread that build something up and take it down: batches and
 * bulk, and the walk through nodes that churn has left where it left them.
 */
#include "loops.h"

/* ---- batches: `slots` blocks allocated, then all freed, in an order */

static ALWAYS_INLINE uint64_t batch_loop(void **slot, const struct params *p, const uint32_t *turn,
                                         enum touch touch, bool check)
{
    struct random rng = random_start(p->seed, 0);
    const uint64_t slots = p->slots, min = p->min, span = params_span(p);
    uint64_t sum = 0;

    for (uint64_t i = 0; i < p->iterations; i++) {
        for (uint64_t k = 0; k < slots; k++) {
            size_t size = size_draw(random_next(&rng), min, span);
            sum += size;
            slot[k] = block_make(size, touch, check);
        }
        if (turn != NULL) {
            for (uint64_t k = 0; k < slots; k++)
                block_drop(slot[turn[k]], p, check);
        } else if (p->order == ORDER_REVERSE) {
            for (uint64_t k = slots; k-- > 0;)
                block_drop(slot[k], p, check);
        } else {
            for (uint64_t k = 0; k < slots; k++)
                block_drop(slot[k], p, check);
        }
    }
    return sum;
}

void work_batch(const struct params *p, struct outcome *out)
{
    void **slot = own_memory(p->slots * sizeof *slot);
    uint32_t *turn = p->order == ORDER_SHUFFLED ? own_permutation(p->slots, p->seed) : NULL;

    clock_start();
    out->checksum = SPECIALISE(batch_loop, p, slot, p, turn);
    clock_stop(out);

    out->operations = 2 * p->iterations * p->slots;
    own_release(slot, p->slots * sizeof *slot);
    if (turn != NULL)
        own_release(turn, p->slots * sizeof *turn);
}

/* ---- chase: `slots` nodes, allocated anew after as many random frees, linked
 * in the order in which they came, and walked */

struct node {
    struct node *next;
    uint64_t number;
};

static struct node *node_make(uint64_t number, const struct params *p)
{
    struct node *node = block_get(p->min);
    node->number = number;
    return node;
}

void work_chase(const struct params *p, struct outcome *out)
{
    const uint64_t nodes = p->slots;
    if (p->min < sizeof(struct node))
        give_up(EXIT_USAGE, "a node of the chase needs %zu bytes", sizeof(struct node));

    /* Alone in own memory while the heap is churned, gone before the walk. */
    struct node **first = own_memory(nodes * sizeof *first);
    uint32_t *turn = own_permutation(nodes, p->seed);
    for (uint64_t i = 0; i < nodes; i++)
        first[i] = node_make(i, p);
    for (uint64_t i = 0; i < nodes; i++)
        free(first[turn[i]]);
    own_release(first, nodes * sizeof *first);
    own_release(turn, nodes * sizeof *turn);

    struct node *head = NULL, **link = &head;
    for (uint64_t i = 0; i < nodes; i++) {
        *link = node_make(i, p);
        link = &(*link)->next;
    }
    *link = NULL;

    uint64_t sum = 0, visits = 0;
    clock_start();
    for (uint64_t pass = 0; pass < p->iterations; pass++)
        for (struct node *at = head; at != NULL; at = at->next) {
            sum += at->number;
            visits++;
        }
    clock_stop(out);

    uint64_t expected = p->iterations * (nodes * (nodes - 1) / 2);
    if (sum != expected || visits != p->iterations * nodes)
        give_up(EXIT_CONTENT, "the chase summed %ju over %ju nodes, expected %ju", (uintmax_t)sum,
                (uintmax_t)visits, (uintmax_t)expected);
    out->operations = visits;
    out->checksum = sum;
    while (head != NULL) {
        struct node *next = head->next;
        free(head);
        head = next;
    }
}
