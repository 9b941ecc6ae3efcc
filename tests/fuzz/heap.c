/* An input is a program of calls of hakmem_* functions, by up to four threads in turn, with a model
 * of the blocks beside it; the kernel refuses what the input says. At its end the heap must be
 * whole, and empty when all is freed. */
#include "model.h"

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    heap_start();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    while (bytes.left > 0)
        heap_act(&bytes);
    heap_end();
    MUST(reports == 0, "%u reports of misuse", reports);
    return 0;
}
