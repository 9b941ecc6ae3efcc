/* A sheet as text, for people or for Prometheus. */
#ifndef HAKMEM_SHEET_PRINT_H
#define HAKMEM_SHEET_PRINT_H

#include "sheet/heap.h"

enum form { FORM_TEXT, FORM_OPENMETRICS };

#define PRINT_MOST 16384 /* bytes, for any sheet */

/* Returns how many bytes the text has. */
size_t sheet_print(enum form form, const struct heap *heap, const struct totals *totals, char *to,
                   size_t room);

#endif
