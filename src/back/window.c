/* The window's numbers, as the fast paths compare with them. From memory that takes an instruction
 * less than from the code, so this file is compiled without optimisation at link time, which would
 * know them. */
#include "back/map.h"

void *const window_base = (void *)WINDOW_BASE;
const uintptr_t window_grains = WINDOW_GRAINS;
