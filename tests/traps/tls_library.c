/* Loaded by reenter.c: it needs more thread-local memory than a loader has in reserve. */
#include <string.h>

static __thread unsigned char large[100000];
static __thread unsigned char small = 17;

unsigned char *tls_touch(unsigned char value);
unsigned char *tls_small(void);

unsigned char *tls_touch(unsigned char value)
{
    memset(large, value, sizeof large);
    return large;
}

unsigned char *tls_small(void) { return &small; }
