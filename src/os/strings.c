/* strdup and strndup are the C library's, and call malloc by its name. They are here because some
 * allocators define them: in a program that is linked with such a one, they would return blocks
 * that free does not know. Only glibc has other names for them. */
#include "base/defs.h"

#ifdef __GLIBC__
#define EXPORT __attribute__((visibility("default")))

char *__strdup(const char *text);
char *__strndup(const char *text, size_t most);
EXPORT char *strdup(const char *text);
EXPORT char *strndup(const char *text, size_t most);

char *strdup(const char *text) { return __strdup(text); }

char *strndup(const char *text, size_t most) { return __strndup(text, most); }
#endif
