#include "heap/thin.h"

#include "base/policy.h"
#include "learn/compaction.h"
#include "os/os.h"

/* The next in a tree of slabs, from its root on; null behind the last. */
static struct pairing_node *node_after(struct pairing_node *node, const struct pairing_node *root)
{
    if (node->child != NULL)
        return node->child;
    while (node != root && node->next == NULL) {
        while (node->prev->child != node)
            node = node->prev;
        node = node->prev;
    }
    return node == root ? NULL : node->next;
}

/* Whether it ends, and has left much empty. */
static COLD bool switch_compaction(struct shard *shard, unsigned cls)
{
    struct begun *begun = &shard->begun[cls];
    bool begins = !begun->compacts;
    store_relaxed(&begun->compacts, begins);
    size_t moved = begun->compacted - begun->before;
    begun->compactions += begins;
    begun->before = begun->compacted;
    struct pairing_node *root = shard->partial[cls].root;
    for (struct pairing_node *node = root; node != NULL; node = node_after(node, root))
        slab_settle_thin(shard, (struct slab *)node);
    return !begins && compaction_gained(moved);
}

bool shard_settle_compaction(struct shard *shard, unsigned cls)
{
    ASSERT(lock_held(&shard->lock));
    if (cls >= CLASSES_THIN)
        return false;
    const struct begun *begun = &shard->begun[cls];
    size_t size = size_classes[cls].size;
    bool differs = begun->compacts ? compaction_ends(begun->free, begun->blocks, size) ||
                                         !load_relaxed(&policy.compact)
                                   : compaction_begins(begun->free, begun->blocks, size, os_page) &&
                                         load_relaxed(&policy.compact);
    return unlikely(differs) && switch_compaction(shard, cls);
}
