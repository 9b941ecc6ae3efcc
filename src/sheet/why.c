#include "sheet/why.h"

#include "base/text.h"

bool why_set(struct why *why, enum ending ending, const char *line)
{
    struct text t;
    text_init(&t, why->line, sizeof why->line);
    text_add(&t, line);
    why->ending = ending;
    return false;
}
