/* A doubly linked list whose head is a node. The caller holds the lock that protects the list. */
#ifndef HAKMEM_BASE_LIST_H
#define HAKMEM_BASE_LIST_H

#include "base/assert.h"
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

#endif
