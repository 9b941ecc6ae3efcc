/* A library whose constructor and destructor allocate, at any position in the order of libraries.
 */
#include <stdlib.h>
#include <string.h>

static char *kept;
static void *many[500];

__attribute__((constructor)) static void begin(void)
{
    kept = strdup("made by a constructor");
    for (size_t i = 0; i < 500; i++)
        many[i] = calloc(i + 1, i * 3 + 1);
    for (size_t i = 0; i < 250; i++)
        free(many[i]);
    for (size_t i = 250; i < 500; i++)
        many[i] = realloc(many[i], i * i);
    kept = realloc(kept, 300000);
    if (kept == NULL || strcmp(kept, "made by a constructor") != 0)
        abort();
}

__attribute__((destructor)) static void end(void)
{
    for (size_t i = 250; i < 500; i++)
        free(many[i]);
    if (strcmp(kept, "made by a constructor") != 0)
        abort();
    free(kept);
}
