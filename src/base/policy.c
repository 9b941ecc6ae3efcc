#include "base/policy.h"

struct policy policy = {
#define OPTION(name, type, value, least, most, help) .name = (value),
#include "base/options.def"
};

char stats_path[PATH_OPTION_MOST], profile_path[PATH_OPTION_MOST], record_path[PATH_OPTION_MOST];

struct hardening hardening;

unsigned closings;
