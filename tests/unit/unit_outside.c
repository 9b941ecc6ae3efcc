/* Blocks inside and outside of the window at the same time: another mapping occupies most of it. */
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "back/map.h"
#include "back/superslabs.h"
#include "hakmem/hakmem.h"

#define THREADS 4
#define SLOTS 20000
#define TURNS 400000

static size_t outside; /* atomic */

static bool in_window(const void *p) { return (uintptr_t)p - WINDOW_BASE < WINDOW; }

static void *work(void *seed)
{
    static __thread unsigned char *blocks[SLOTS];
    static __thread unsigned short sizes[SLOTS];
    uint64_t random = (uintptr_t)seed;
    for (int i = 0; i < TURNS; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        unsigned slot = (unsigned)(random >> 33) % SLOTS;
        unsigned char mark = (unsigned char)(slot * 7 + 1);
        if (blocks[slot] != NULL) {
            for (size_t j = 0; j < sizes[slot]; j++)
                EXPECT_EQUAL(blocks[slot][j], mark);
            hakmem_free(blocks[slot]);
            blocks[slot] = NULL;
        } else {
            sizes[slot] = (unsigned short)(16 + (random >> 50) % 1500);
            blocks[slot] = hakmem_malloc(sizes[slot]);
            EXPECT(blocks[slot] != NULL);
            memset(blocks[slot], mark, sizes[slot]);
            if (!in_window(blocks[slot]))
                __atomic_add_fetch(&outside, 1, __ATOMIC_RELAXED);
        }
    }
    for (unsigned slot = 0; slot < SLOTS; slot++)
        hakmem_free(blocks[slot]);
    EXPECT_EQUAL(hakmem_check(), 0); /* some lie in this thread's stacks */
    return NULL;
}

static void occupy(uintptr_t from, uintptr_t end)
{
    EXPECT(mmap((void *)from, end - from, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == (void *)from);
}

int main(void)
{
    char *first = hakmem_malloc(64);
    EXPECT(in_window(first));
    uintptr_t superslab = (uintptr_t)first & ~(SUPERSLAB - 1);
    if (superslab > WINDOW_BASE)
        occupy(WINDOW_BASE, superslab);
    if (superslab + 4 * SUPERSLAB < WINDOW_BASE + WINDOW)
        occupy(superslab + 4 * SUPERSLAB, WINDOW_BASE + WINDOW);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    hakmem_free(first);
    EXPECT(outside > 1000);
    puts("1 passed, 0 failed");
    return 0;
}
