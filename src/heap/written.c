/* What something wrote to free blocks in slabs. */
#include "heap/shard.h"
#include "heap/shards.h"

/* Children before siblings; up again over the first child to the parent. */
static void *tree_written(const struct pairing_node *root, size_t *most)
{
    const struct pairing_node *node = root;
    while (node != NULL && *most > 0) {
        void *found = slab_written((const struct slab *)node, most);
        if (found != NULL)
            return found;
        if (node->child != NULL) {
            node = node->child;
            continue;
        }
        while (node != root && node->next == NULL) {
            while (node->prev->child != node)
                node = node->prev;
            node = node->prev;
        }
        node = node->next; /* the root has none */
    }
    return NULL;
}

SLOW void *shards_written(size_t *most)
{
    void *found = NULL;
    for (unsigned i = 0; i < SHARDS_MOST && found == NULL; i = shard_after(i)) {
        if (!lock_try(&shards[i]->lock))
            continue;
        for (unsigned cls = 0; cls < CLASS_SLICES_FIRST && found == NULL; cls++)
            found = tree_written(shards[i]->partial[cls].root, most);
        lock_release(&shards[i]->lock);
    }
    return found;
}
