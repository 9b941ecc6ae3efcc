/* An input is a program of calls of hakmem_* functions, made by up to four threads in turn and
 * compared with a model of the blocks. The kernel refuses the calls that the input says. At the end
 * the heap check must find nothing, and the heap must be empty after all is freed. */
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
