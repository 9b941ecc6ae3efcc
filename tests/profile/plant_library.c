/* A part of the program that lies in a shared library. */
#include <stdlib.h>

void *library_keeps(size_t bytes)
{
    return malloc(bytes); /* here: library_keeps */
}
