/* A function of libc, INTERPOSED, as preloaded libraries define them: it opens a library at its
 * first call and allocates at each, unless it is a LEAF, and then passes the call on. Compiled once
 * for each function.
 *
 * It knows no function's type. A caller passes integers and pointers, in the registers and places
 * on the stack that are those of the first so many of eight; what it has not passed is not looked
 * at by the function either. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

typedef long function(long, long, long, long, long, long, long, long);

extern function interposed __asm__(INTERPOSED);
unsigned long interposer_calls(void);

static function *next;      /* atomic */
static int opened;          /* atomic */
static unsigned long calls; /* atomic */

/* Whether what this thread allocates in here has come back here. */
static __thread int inside __attribute__((tls_model("initial-exec")));

static void allocate(void)
{
    char *grown = malloc(100);
    char *zeroed = calloc(10, 10);
    if (grown == NULL || zeroed == NULL || zeroed[99] != 0)
        abort();
    grown[99] = 1;
    grown = realloc(grown, 5000);
    if (grown == NULL || grown[99] != 1)
        abort();
    free(zeroed);
    free(grown);
}

static function *find(void) { return (function *)dlsym(RTLD_NEXT, INTERPOSED); }

long interposed(long a, long b, long c, long d, long e, long f, long g, long h)
{
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (!LEAF && !inside) {
        inside = 1;
        int error = errno;
        if (!__atomic_exchange_n(&opened, 1, __ATOMIC_RELAXED)) {
            dlopen("libm.so.6", RTLD_NOW);
            __atomic_store_n(&next, find(), __ATOMIC_RELAXED);
        }
        allocate();
        errno = error;
        inside = 0;
    }
    function *to = __atomic_load_n(&next, __ATOMIC_RELAXED);
    return (to != NULL ? to : find())(a, b, c, d, e, f, g, h);
}

unsigned long interposer_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }
