/* The public function for the sheet of the process. */
#include <errno.h>

#include "hakmem/hakmem.h"
#include "os/os.h"
#include "sheet/own.h"

__attribute__((visibility("default"))) int hakmem_sheet(int fd, int format)
{
    KEEP_ERRNO;
    if (format != HAKMEM_SHEET_TEXT && format != HAKMEM_SHEET_OPENMETRICS)
        return EINVAL;
    return sheet_write_own(fd, format == HAKMEM_SHEET_TEXT ? FORM_TEXT : FORM_OPENMETRICS).number;
}
