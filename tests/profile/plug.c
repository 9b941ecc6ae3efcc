/* A plug-in: PLUG is its function's name. */
#include <stdlib.h>
#include <string.h>

#define BLOCK 16384
#ifndef KEPT
#define KEPT 2048
#endif

void PLUG(void **to);

void PLUG(void **to)
{
    for (unsigned i = 0; i < KEPT; i++) {
        to[i] = malloc(BLOCK); /* here: plug */
        memset(to[i], 1, BLOCK);
    }
}
