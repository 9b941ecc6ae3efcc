#include "os/output.h"

#include <errno.h>

#include "base/text.h"
#include "os/calls.h"
#include "os/self.h"

#define WAIT_STEP 10 /* milliseconds */
#define WAIT_MOST 1000

int output_write(int file, const char *text, size_t length)
{
    unsigned waited = 0;
    while (length > 0) {
        long done = call_write(file, text, length);
        if (done == -EINTR)
            continue;
        if (done == -EAGAIN && waited < WAIT_MOST) {
            os_let_pass(WAIT_STEP);
            waited += WAIT_STEP;
            continue;
        }
        if (done <= 0)
            return done < 0 ? (int)-done : EIO;
        text += done;
        length -= (size_t)done;
    }
    return 0;
}

int output_begin(struct output *output, const char *path)
{
    text_of(output->beside, sizeof output->beside, "%s.%u.tmp", path, os_process());
    output->path = path;
    call_unlink(output->beside); /* one that a killed process of this number left */
    output->file = call_open(output->beside, O_WRONLY | O_CREAT | O_EXCL);
    return output->file < 0 ? -output->file : 0;
}

int output_end(struct output *output, int error)
{
    int closed = call_close(output->file);
    if (error == 0)
        error = -closed;
    if (error == 0)
        error = -call_rename(output->beside, output->path);
    if (error != 0)
        call_unlink(output->beside);
    return error;
}
