/* A program without unwind tables, as its CMakeLists.txt has it compiled and linked. It keeps
 * blocks behind calls that only frame pointers tell, also between those of the C library, which has
 * tables. Then it allocates with anything in the frame pointer's register. */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CALLED __attribute__((noinline, noclone))
#define KEPT 4096
#define BLOCK 16384
#define TRIES 20000

static void *kept[3 * KEPT];
static unsigned count;

CALLED static void keep(void)
{
    void *p = malloc(BLOCK);
    memset(p, 1, BLOCK);
    kept[count++] = p;
}

CALLED static int third(volatile char *large)
{
    for (unsigned i = 0; i < KEPT; i++)
        keep();
    return large[0];
}

CALLED static int second(void)
{
    volatile char large[5000] = {1};
    return third(large) + large[1];
}

CALLED static int first(void) { return second() + 1; }

static int compare(const void *a, const void *b)
{
    if (count < 2 * KEPT)
        keep();
    return *(const int *)a - *(const int *)b;
}

CALLED static int sorts(void)
{
    static int numbers[KEPT];
    for (int i = 0; i < KEPT; i++)
        numbers[i] = i * 7919 % KEPT;
    qsort(numbers, KEPT, sizeof *numbers, compare);
    return numbers[0];
}

static void *thread(void *result)
{
    *(int *)result = first();
    return result;
}

/* ---- anything as the frame pointer ---- */

__attribute__((naked, noinline)) static void *allocate(__attribute__((unused)) size_t bytes,
                                                       __attribute__((unused)) uintptr_t pointer)
{
    __asm__("push %rbp\n\t"
            "mov %rsi, %rbp\n\t"
            "call malloc@PLT\n\t"
            "pop %rbp\n\t"
            "ret");
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

/* On the stack lie addresses after calls, of code that calls nothing, of the stack and of nothing,
 * which may be taken for frames. */
static void *confuse(void *result)
{
    uintptr_t words[512];
    uint64_t state = 4711;
    uintptr_t here = (uintptr_t)words;
    const uintptr_t odd[] = {0,
                             1,
                             8,
                             4096,
                             UINTPTR_MAX,
                             UINTPTR_MAX - 15,
                             (uintptr_t)1 << 63,
                             (uintptr_t)1 << 47,
                             (uintptr_t)&count,
                             (uintptr_t)allocate};
    for (unsigned i = 0; i < TRIES; i++) {
        for (unsigned k = 0; k < 512; k++) {
            uint64_t r = random_next(&state);
            words[k] = r % 4 == 0   ? (uintptr_t)__builtin_return_address(0)
                       : r % 4 == 1 ? odd[r / 4 % (sizeof odd / sizeof *odd)]
                       : r % 4 == 2 ? here + r / 4 % (1 << 14)
                                    : here + r / 4 % 512 * 8;
        }
        uint64_t r = random_next(&state);
        uintptr_t pointer = r % 4 == 0   ? odd[r / 4 % (sizeof odd / sizeof *odd)]
                            : r % 4 == 1 ? here + r / 4 % (1 << 20)
                                         : here + r / 4 % 512 * 8;
        char *p = allocate(64, pointer);
        p[0] = 1;
        *(int *)result += p[0];
        free(p);
    }
    return result;
}

static int in_thread(void *(*run)(void *))
{
    pthread_t one;
    pthread_attr_t small;
    int result = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    if (pthread_create(&one, &small, run, &result) != 0 || pthread_join(one, NULL) != 0)
        return INT_MAX;
    return result;
}

int main(void)
{
    int odd = 0;
    int result = first() + sorts() + in_thread(thread);
    confuse(&odd);
    return result == 4 && odd == TRIES && in_thread(confuse) == TRIES ? 0 : 1;
}
