/* The window's base, as the fast paths compare with it. From memory that takes an instruction less
 * than from the code, so this file is compiled without optimisation at link time, which would know
 * it. */
#include "back/map.h"

void *const window_base = (void *)WINDOW_BASE;
