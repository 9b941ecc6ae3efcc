#include "base/counters.h"

struct counters counters;
