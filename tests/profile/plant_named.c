/* Allocates known amounts under names of its own, in one function, and frees half of them. */
#include <hakmem/hakmem.h>

#define BLOCK 1024
#define BLOCKS (64 * 1024)

static void *blocks[2][BLOCKS];

__attribute__((noinline)) static void *get(const char *site)
{
    void *p = hakmem_malloc_at(BLOCK, site);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return p;
}

int main(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[0][i] = get("cache; of <pages>");
        blocks[1][i] = get("request\nbuffer");
    }
    for (int i = 0; i < BLOCKS; i++)
        hakmem_free(blocks[1][i]);
    return 0;
}
