#include "base/hardening.h"

struct hardening hardening;
