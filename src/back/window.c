/* The window's base, with which the fast paths compare. Reading it from memory takes one
 * instruction less than a constant in the code. So this file is compiled without link-time
 * optimisation, which would turn it into a constant. */
#include "back/map.h"

void *const window_base = (void *)WINDOW_BASE;
