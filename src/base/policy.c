#include "base/policy.h"

struct policy policy = {
#define OPTION(name, type, value, least, most, help) .name = (value),
#include "base/options.def"
};

struct keeping keeping = {.slices = AUTO, .huge = AUTO};
