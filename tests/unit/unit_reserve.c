/* The reserve by itself: blocks have malloc's guarantees, regions come and go, what a child may do,
 * and addresses that are not blocks in use. */
#include "unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "back/reserve.h"
#include "life/life.h"
#include "os/lock.h"
#include "os/os.h"

#define BLOCKS 3000

static struct {
    unsigned char *p;
    size_t n;
} blocks[BLOCKS];

static void block_make(unsigned i)
{
    size_t align = (size_t)1 << next_random() % 17;
    blocks[i].n = 1 + next_random() % (i % 100 == 0 ? 3 * MiB : 2000);
    blocks[i].p = reserve_take(blocks[i].n, align);
    EXPECT(blocks[i].p != NULL);
    EXPECT_EQUAL((uintptr_t)blocks[i].p % align, 0);
    EXPECT_EQUAL((uintptr_t)blocks[i].p % 16, 0);
    EXPECT_EQUAL(reserve_usable(blocks[i].p), round_up(blocks[i].n, 16));
    memset(blocks[i].p, (int)(i % 251), blocks[i].n);
}

static void block_free(unsigned i)
{
    for (size_t at = 0; at < blocks[i].n; at++)
        EXPECT_EQUAL(blocks[i].p[at], i % 251);
    EXPECT_EQUAL(reserve_give(blocks[i].p), MISUSE_NONE);
}

static void expect_nothing_left(size_t mapped)
{
    EXPECT_EQUAL(reserve_parts().used, 0);
    EXPECT_EQUAL(reserve_parts().mapped, 0);
    EXPECT_EQUAL(os_mapped(), mapped);
}

static void blocks_come_and_go(void)
{
    size_t before = os_mapped();
    for (unsigned i = 0; i < BLOCKS; i++)
        block_make(i);
    EXPECT(reserve_parts().used >= BLOCKS && reserve_parts().used <= reserve_parts().mapped);
    for (unsigned i = 0; i < BLOCKS; i += 2)
        block_free(i);
    for (unsigned i = 0; i < BLOCKS; i += 2)
        block_make(i);
    for (unsigned i = 0; i < BLOCKS; i++)
        block_free(i);
    expect_nothing_left(before);
}

static void what_is_no_block_in_use(void)
{
    char *keeps = reserve_take(100, 1), *p = reserve_take(64, 1);
    static long word[2];
    EXPECT_EQUAL(reserve_give(word), MISUSE_FOREIGN);
    EXPECT_EQUAL(reserve_usable(word), 0);
    EXPECT_EQUAL(reserve_give(p + 8), MISUSE_INTERIOR);
    EXPECT_EQUAL(reserve_give(p + 16), MISUSE_INTERIOR);
    EXPECT_EQUAL(reserve_usable(p + 16), 0);
    EXPECT_EQUAL(reserve_give(p), MISUSE_NONE);
    EXPECT_EQUAL(reserve_usable(p), 0);
    EXPECT_EQUAL(reserve_give(p), MISUSE_FREE);
    EXPECT_EQUAL(reserve_give(keeps), MISUSE_NONE);
    EXPECT_EQUAL(reserve_give(keeps), MISUSE_FOREIGN);
}

/* More than there is: nothing changes. */
static void without_memory(void)
{
    size_t before = os_mapped();
    EXPECT(reserve_take((size_t)1 << 52, 1) == NULL);
    EXPECT(reserve_take(1, (size_t)1 << 52) == NULL);
    expect_nothing_left(before);
}

/* A child frees what it was left, and has regions of its own. */
static void a_child(void)
{
    size_t before = os_mapped();
    for (unsigned i = 0; i < BLOCKS; i++)
        block_make(i);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        heap_lock_all();
        reserve_fork_child();
        heap_unlock_all();
        char *p = reserve_take(1000, 1);
        for (unsigned i = 0; i < BLOCKS; i++)
            EXPECT(p >= (char *)blocks[i].p + blocks[i].n || p + 1000 <= (char *)blocks[i].p);
        for (unsigned i = 0; i < BLOCKS; i++)
            block_free(i);
        EXPECT_EQUAL(reserve_give(p), MISUSE_NONE);
        expect_nothing_left(before);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQUAL(status, 0);
    for (unsigned i = 0; i < BLOCKS; i++)
        block_free(i);
    expect_nothing_left(before);
}

/* While a fork lasts the region in use stays, and goes when that is over. */
static void while_a_fork_lasts(void)
{
    size_t before = os_mapped();
    fork_state = FORK_LASTS;
    char *p = reserve_take(100, 1);
    EXPECT_EQUAL(reserve_give(p), MISUSE_NONE);
    EXPECT(reserve_take(100, 1) == p);
    EXPECT_EQUAL(reserve_give(p), MISUSE_NONE);
    EXPECT(reserve_parts().mapped != 0);
    fork_state = FORK_NONE;
    reserve_release();
    expect_nothing_left(before);
}

int main(void)
{
    const struct os_given given = os_ask();
    os_start(&given);
    blocks_come_and_go();
    what_is_no_block_in_use();
    without_memory();
    a_child();
    while_a_fork_lasts();
    puts("5 passed, 0 failed");
    return 0;
}
