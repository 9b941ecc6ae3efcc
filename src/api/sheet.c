/* The public function for the sheet of the process. */
#include <errno.h>

#include "hakmem/hakmem.h"
#include "os/keep_errno.h"
#include "sheet/own.h"

__attribute__((visibility("default"))) int hakmem_sheet(int file, int format)
{
    KEEP_ERRNO;
    if (format != HAKMEM_SHEET_TEXT && format != HAKMEM_SHEET_OPENMETRICS)
        return EINVAL;
    return sheet_write_own(file, format == HAKMEM_SHEET_TEXT ? FORM_TEXT : FORM_OPENMETRICS);
}
