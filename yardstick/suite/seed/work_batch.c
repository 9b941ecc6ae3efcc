/*
 * Rows of one thread that build something up and take it down: batches and
 * bulk, a buffer grown by realloc, and the walk through nodes that churn has
 * left where it left them.
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

/* ---- realloc: `slots` buffers, a random one of which grows by half */

struct buffer {
    unsigned char *bytes;
    size_t size;
};

static void buffer_verify(const struct buffer *b, size_t slot)
{
    /* First and last byte as written at the last growth: both must move along. */
    if (b->bytes[0] != (unsigned char)slot || b->bytes[b->size - 1] != (unsigned char)b->size)
        give_up(EXIT_CONTENT, "buffer %zu of %zu bytes lost its content in realloc", slot, b->size);
}

void work_realloc(const struct params *p, struct outcome *out)
{
    struct buffer *buffer = own_memory(p->slots * sizeof *buffer);
    struct random rng = random_start(p->seed, 0);
    uint64_t calls = 0, sum = 0;

    clock_start();
    for (uint64_t i = 0; i < p->iterations; i++) {
        size_t slot = random_low(random_next(&rng), p->slots);
        struct buffer *b = &buffer[slot];
        size_t old = b->size;
        size_t size = b->bytes == NULL ? p->min : old + old / 2;
        calls++;
        if (size > p->max) {
            buffer_verify(b, slot);
            free(b->bytes);
            *b = (struct buffer){0};
            continue;
        }
        unsigned char *bytes = realloc(b->bytes, size);
        if (bytes == NULL)
            give_up(EXIT_NO_MEMORY, "realloc(%zu) found no memory", size);
        *b = (struct buffer){.bytes = bytes, .size = old};
        if (old != 0)
            buffer_verify(b, slot);
        b->size = size;
        bytes[0] = (unsigned char)slot;
        bytes[size - 1] = (unsigned char)size;
        KEEP(bytes);
        sum += size;
    }
    clock_stop(out);
    out->operations = calls;
    out->checksum = sum;

    for (uint64_t i = 0; i < p->slots; i++)
        free(buffer[i].bytes);
    own_release(buffer, p->slots * sizeof *buffer);
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
