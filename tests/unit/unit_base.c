/* Bits, the pairing heap, text. */
#include "unit.h"

#include <string.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/text.h"

static unsigned longest_slowly(uint64_t set)
{
    unsigned longest = 0, run = 0;
    for (unsigned i = 0; i < 64; i++) {
        run = set >> i & 1 ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static uint64_t starts_slowly(uint64_t set, unsigned n)
{
    uint64_t starts = 0;
    for (unsigned i = 0; i + n <= 64; i++)
        if ((set >> i & low_bits(n)) == low_bits(n))
            starts |= (uint64_t)1 << i;
    return starts;
}

static void check_runs(uint64_t set)
{
    EXPECT_EQUAL(longest_run(set), longest_slowly(set));
    for (unsigned n = 1; n <= 64; n++)
        EXPECT_EQUAL(run_starts(set, n), starts_slowly(set, n));
}

static void runs(void)
{
    check_runs(0);
    check_runs(~(uint64_t)0);
    for (unsigned n = 1; n < 64; n++) {
        check_runs(low_bits(n));
        check_runs(~low_bits(n));
        check_runs(low_bits(n) << (64 - n) / 2);
    }
    for (int i = 0; i < 20000; i++) {
        uint64_t sparse = next_random() & next_random();
        check_runs(sparse);
        check_runs(~sparse);
        check_runs(next_random() & (low_bits(40) << next_random() % 24));
    }
}

#define NODES 2000

static void lowest(void)
{
    static struct pairing_node nodes[NODES];
    static bool in[NODES];
    struct pairing_heap set = {NULL};
    unsigned members = 0;
    for (unsigned i = 0; i < NODES; i++)
        nodes[i].key = i * 37 % NODES;
    for (int step = 0; step < 200000; step++) {
        unsigned i = (unsigned)(next_random() % NODES);
        if (in[i]) {
            pairing_remove(&set, &nodes[i]);
            members--;
        } else {
            pairing_add(&set, &nodes[i]);
            members++;
        }
        in[i] = !in[i];
        EXPECT_EQUAL(set.root == NULL, members == 0);
        if (step % 97 == 0 && members > 0) {
            uintptr_t least = UINTPTR_MAX;
            for (unsigned j = 0; j < NODES; j++)
                if (in[j] && nodes[j].key < least)
                    least = nodes[j].key;
            EXPECT_EQUAL(set.root->key, least);
        }
    }
    uintptr_t last = 0;
    while (set.root != NULL) {
        struct pairing_node *root = set.root;
        EXPECT(root->key >= last);
        last = root->key;
        pairing_remove(&set, root);
        members--;
    }
    EXPECT_EQUAL(members, 0);
}

static void text(void)
{
    char buffer[16], more[128];
    struct text t = text_of(buffer, sizeof buffer, "a%u", 0);
    text_write(&t, "%u", 1234u);
    text_write(&t, "%#x", 0xbeef);
    EXPECT(strcmp(buffer, "a012340xbeef") == 0);
    text_write(&t, "%zu", SIZE_MAX);
    EXPECT_EQUAL(t.used, 15);
    EXPECT(strcmp(buffer, "a012340xbeef184") == 0);
    t = text_of(more, sizeof more, "%s %.*s %zu%% %016lx %02x %#lx|", "own\n", 4, "a\tbcd",
                SIZE_MAX, 0xabcul, 7, UINT64_MAX);
    EXPECT(strcmp(more,
                  "own\n a?bc 18446744073709551615% 0000000000000abc 07 0xffffffffffffffff|") == 0);
    EXPECT_EQUAL(t.used, strlen(more));
    t = text_of(more, sizeof more, "%3u|%3s|%-3s|%3s|%2u", 7, "a", "b", "long", 100);
    EXPECT(strcmp(more, "  7|  a|b  |long|100") == 0);
}

int main(void)
{
    runs();
    lowest();
    text();
    puts("3 passed, 0 failed");
    return 0;
}
