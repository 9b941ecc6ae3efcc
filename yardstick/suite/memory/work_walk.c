/*
 * Walks: structures are built on a heap that churn has left in holes, amid other blocks that come
 * and go, as programs build theirs; then they are walked. Only the walk is timed: it costs what the
 * places of the blocks make it cost.
 *
 *   tree     a tree built depth first, as a parser does, and walked in that order
 *   vector   pointers to objects of mixed sizes, visited in order
 *   two      two lists of different sizes that grow in turn; one is walked
 *   hash     entries with a key of their own each, looked up in random order
 */
#include "memory.h"

enum {
    CHURN_MIN = 16,
    CHURN_MAX = 256,
    CHURN_KEPT_ONE_OF = 16,
    NOISE = 64, /* other blocks that live while a structure grows */
};

/* ---- what surrounds a structure */

struct scene {
    const struct params *p;
    struct random rng;
    uint64_t checksum;
    void **kept; /* of the churn, to the end */
    uint64_t kept_count;
    void *noise[NOISE];
};

static void *taken(struct scene *s, size_t size)
{
    s->checksum = s->checksum * 31 + size;
    return filled_make(size);
}

static void *node_make(struct scene *s, size_t size)
{
    s->checksum = s->checksum * 31 + size;
    return block_get(size);
}

static size_t churn_size(uint64_t bits)
{
    return size_draw(bits, CHURN_MIN, CHURN_MAX - CHURN_MIN + 1);
}

/* Twice as many blocks as the structure has, freed at random but for a sixteenth. */
static struct scene *scene_begin(const struct params *p)
{
    struct scene *s = own_touched(sizeof *s);
    const uint64_t blocks = 2 * p->iterations;
    void **block = own_touched(blocks * sizeof *block);
    uint32_t *order = own_permutation(blocks, p->seed);
    *s = (struct scene){
        .p = p, .rng = random_start(p->seed, 0), .kept_count = blocks / CHURN_KEPT_ONE_OF};
    s->kept = own_touched((s->kept_count + 1) * sizeof *s->kept);
    for (uint64_t i = 0; i < blocks; i++)
        block[i] = taken(s, churn_size(random_next(&s->rng)));
    for (uint64_t i = 0; i < s->kept_count; i++)
        s->kept[i] = block[order[i]];
    for (uint64_t i = s->kept_count; i < blocks; i++)
        free(block[order[i]]);
    own_release(block, blocks * sizeof *block);
    own_release(order, blocks * sizeof *order);
    return s;
}

/* One of the other blocks goes, one comes. */
static void scene_noise(struct scene *s)
{
    const uint64_t bits = random_next(&s->rng);
    void **place = &s->noise[random_low(bits, NOISE)];
    free(*place);
    *place = taken(s, churn_size(bits));
}

static void scene_end(struct scene *s, struct outcome *out, uint64_t sum, uint64_t expected)
{
    if (sum != expected)
        give_up(EXIT_CONTENT, "the walk summed %ju, expected %ju", (uintmax_t)sum,
                (uintmax_t)expected);
    out->operations = s->p->batch * s->p->iterations;
    out->checksum = s->checksum;
    for (unsigned i = 0; i < NOISE; i++)
        free(s->noise[i]);
    for (uint64_t i = 0; i < s->kept_count; i++)
        free(s->kept[i]);
    own_release(s->kept, (s->kept_count + 1) * sizeof *s->kept);
    own_release(s, sizeof *s);
}

/* Of the numbers 0 to n-1, once each pass. */
static uint64_t expected_sum(const struct params *p)
{
    return p->batch * (p->iterations * (p->iterations - 1) / 2);
}

/* ---- tree */

struct branch {
    struct branch *left, *right;
    uint64_t number;
    uint64_t other[2];
};

/* Numbered in the order in which they are made. */
static struct branch *tree_grow(struct scene *s, uint64_t nodes, uint64_t *number)
{
    if (nodes == 0)
        return NULL;
    struct branch *b = node_make(s, sizeof *b);
    scene_noise(s);
    b->number = (*number)++;
    /* A quarter at least on either side: the depth stays small. */
    const uint64_t left = (nodes - 1) / 4 + random_low(random_next(&s->rng), (nodes - 1) / 2 + 1);
    b->left = tree_grow(s, left, number);
    b->right = tree_grow(s, nodes - 1 - left, number);
    return b;
}

static uint64_t tree_sum(const struct branch *b)
{
    uint64_t sum = 0;
    for (; b != NULL; b = b->right)
        sum += b->number + tree_sum(b->left);
    return sum;
}

static void tree_drop(struct branch *b)
{
    while (b != NULL) {
        struct branch *right = b->right;
        tree_drop(b->left);
        free(b);
        b = right;
    }
}

void work_walk_tree(const struct params *p, struct outcome *out)
{
    struct scene *s = scene_begin(p);
    uint64_t number = 0, sum = 0;
    struct branch *root = tree_grow(s, p->iterations, &number);

    clock_start();
    for (uint64_t pass = 0; pass < p->batch; pass++) {
        KEEP(root);
        sum += tree_sum(root);
    }
    clock_stop(out);

    tree_drop(root);
    scene_end(s, out, sum, expected_sum(p));
}

/* ---- vector */

void work_walk_vector(const struct params *p, struct outcome *out)
{
    struct scene *s = scene_begin(p);
    uint64_t **object = own_touched(p->iterations * sizeof *object);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < p->iterations; i++) {
        object[i] = node_make(s, size_draw(random_next(&s->rng), p->min, params_span(p)));
        *object[i] = i;
        scene_noise(s);
    }

    clock_start();
    for (uint64_t pass = 0; pass < p->batch; pass++) {
        KEEP(object);
        for (uint64_t i = 0; i < p->iterations; i++)
            sum += *object[i];
    }
    clock_stop(out);

    for (uint64_t i = 0; i < p->iterations; i++)
        free(object[i]);
    own_release(object, p->iterations * sizeof *object);
    scene_end(s, out, sum, expected_sum(p));
}

/* ---- two lists */

struct link {
    struct link *next;
    uint64_t number;
};

static struct link **link_append(struct scene *s, struct link **end, size_t size, uint64_t number)
{
    struct link *l = node_make(s, size);
    *l = (struct link){.number = number};
    *end = l;
    return &l->next;
}

static void links_drop(struct link *l)
{
    while (l != NULL) {
        struct link *next = l->next;
        free(l);
        l = next;
    }
}

void work_walk_two(const struct params *p, struct outcome *out)
{
    struct scene *s = scene_begin(p);
    struct link *walked = NULL, *other = NULL, **walked_end = &walked, **other_end = &other;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < p->iterations; i++) {
        walked_end = link_append(s, walked_end, p->min, i);
        for (uint64_t n = random_low(random_next(&s->rng), 3); n > 0; n--)
            other_end = link_append(s, other_end, p->max, i);
        scene_noise(s);
    }

    clock_start();
    for (uint64_t pass = 0; pass < p->batch; pass++) {
        KEEP(walked);
        for (const struct link *l = walked; l != NULL; l = l->next)
            sum += l->number;
    }
    clock_stop(out);

    links_drop(walked);
    links_drop(other);
    scene_end(s, out, sum, expected_sum(p));
}

/* ---- hash */

struct entry {
    struct entry *next;
    uint64_t *key; /* a block of its own, as a string's */
    uint64_t number;
};

static uint64_t key_of(uint64_t number) { return (number + 1) * UINT64_C(0x9e3779b97f4a7c15); }

static const struct entry *entry_find(struct entry *const *bucket, uint64_t buckets, uint64_t key)
{
    const struct entry *e = bucket[random_high(key, buckets)];
    while (e != NULL && *e->key != key)
        e = e->next;
    return e;
}

void work_walk_hash(const struct params *p, struct outcome *out)
{
    struct scene *s = scene_begin(p);
    const uint64_t buckets = p->iterations;
    struct entry **bucket = own_touched(buckets * sizeof(struct entry *));
    for (uint64_t i = 0; i < p->iterations; i++) {
        struct entry *e = node_make(s, sizeof *e);
        e->key = node_make(s, size_draw(random_next(&s->rng), p->min, params_span(p)));
        e->number = i;
        *e->key = key_of(i);
        struct entry **b = &bucket[random_high(*e->key, buckets)];
        e->next = *b;
        *b = e;
        scene_noise(s);
    }
    uint32_t *order = own_permutation(p->iterations, p->seed + 1);
    uint64_t sum = 0;

    clock_start();
    for (uint64_t pass = 0; pass < p->batch; pass++)
        for (uint64_t i = 0; i < p->iterations; i++) {
            const struct entry *e = entry_find(bucket, buckets, key_of(order[i]));
            sum += e != NULL ? e->number : 0;
        }
    clock_stop(out);

    for (uint64_t b = 0; b < buckets; b++)
        for (struct entry *e = bucket[b]; e != NULL;) {
            struct entry *next = e->next;
            free(e->key);
            free(e);
            e = next;
        }
    own_release(bucket, buckets * sizeof(struct entry *));
    own_release(order, p->iterations * sizeof *order);
    scene_end(s, out, sum, expected_sum(p));
}
