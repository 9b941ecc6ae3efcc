/* Two sets whose nodes are members of what is in them: a doubly linked list whose head is a node,
 * and a pairing heap. The caller holds the lock that protects the set. */
#ifndef HAKMEM_BASE_LIST_H
#define HAKMEM_BASE_LIST_H

#include "base/atomic.h"
#include "base/defs.h"

struct list {
    struct list *next;
    struct list *prev;
};

#define list_entry(node, type, field) ((type *)((char *)(node)-offsetof(type, field)))

static inline void list_init(struct list *head) { head->next = head->prev = head; }
static inline bool list_empty(const struct list *head) { return head->next == head; }

static inline void list_push(struct list *head, struct list *node)
{
    ASSERT(head->next->prev == head && head->prev->next == head);
    node->next = head->next;
    node->prev = head;
    head->next->prev = node;
    head->next = node;
}

static inline void list_remove(struct list *node)
{
    ASSERT(node->prev->next == node && node->next->prev == node);
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* ---- a pairing heap ----
 *
 * It always knows its lowest node, by a number in the node. add and peek are O(1), pop and remove
 * O(log n) amortised.
 *
 * Memory is handed out lowest address first at every level, so that what survives gathers at the
 * low end and the high end becomes empty. */

struct pairing_node {
    uintptr_t key;
    struct pairing_node *child; /* first child */
    struct pairing_node *next;  /* next sibling */
    struct pairing_node *prev;  /* previous sibling, or the parent for a first child */
};

struct pairing_heap {
    struct pairing_node *root; /* atomic, so that one may peek without the lock */
};

static inline struct pairing_node *pairing_link(struct pairing_node *a, struct pairing_node *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    ASSERT(a != b && a->key != b->key);
    if (b->key < a->key) {
        struct pairing_node *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a;
    b->next = a->child;
    if (a->child != NULL)
        a->child->prev = b;
    a->child = b;
    return a;
}

/* Joins a list of siblings into one tree: in pairs from the left, then the pairs from the right. */
static inline struct pairing_node *pairing_join(struct pairing_node *first)
{
    struct pairing_node *pairs = NULL;
    while (first != NULL) {
        struct pairing_node *a = first;
        struct pairing_node *b = a->next;
        first = b != NULL ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b != NULL)
            b->next = b->prev = NULL;
        struct pairing_node *pair = pairing_link(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    struct pairing_node *tree = NULL;
    while (pairs != NULL) {
        struct pairing_node *pair = pairs;
        pairs = pair->next;
        pair->next = NULL;
        tree = pairing_link(tree, pair);
    }
    return tree;
}

static inline void pairing_add(struct pairing_heap *set, struct pairing_node *node)
{
    node->child = node->next = node->prev = NULL;
    store_relaxed(&set->root, pairing_link(set->root, node));
}

static inline void pairing_remove(struct pairing_heap *set, struct pairing_node *node)
{
    ASSERT(set->root != NULL && (set->root == node || node->prev != NULL));
    struct pairing_node *below = pairing_join(node->child);
    if (set->root == node) {
        store_relaxed(&set->root, below);
        return;
    }
    if (node->prev->child == node)
        node->prev->child = node->next;
    else
        node->prev->next = node->next;
    if (node->next != NULL)
        node->next->prev = node->prev;
    store_relaxed(&set->root, pairing_link(set->root, below));
}

/* The node after this one, in an order that has each once: children before siblings. Null behind
 * the last. */
static inline struct pairing_node *pairing_after(const struct pairing_heap *set,
                                                 struct pairing_node *node)
{
    if (node->child != NULL)
        return node->child;
    while (node != set->root && node->next == NULL) {
        while (node->prev->child != node)
            node = node->prev;
        node = node->prev;
    }
    return node->next; /* the root has none */
}

#endif
