/* A part of the program that lies in a shared library. */
#include <stdlib.h>

void *library_keeps(size_t bytes)
{
    void *block = malloc(bytes); /* here: library_keeps */
    return block;
}
