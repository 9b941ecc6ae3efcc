#include "life/statistics.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/policy.h"
#include "base/text.h"
#include "os/keep_errno.h"
#include "os/os.h"
#include "os/self.h"
#include "sheet/own.h"

static bool at_work; /* atomic: one thread writes at a time */

static void complain(const char *option, const char *about, int error)
{
    char line[PATH_OPTION_MOST + 256];
    struct text t;
    text_init(&t, line, sizeof line);
    text_add(&t, "hakmem: ");
    text_add(&t, option);
    text_add(&t, ": ");
    text_add_foreign(&t, about, PATH_OPTION_MOST);
    text_add(&t, *about != 0 ? ": " : "");
    text_add_error(&t, error);
    text_add(&t, "\n");
    os_print_error(t.start, t.used);
}

/* The name of the file, with the process's number. */
static void add_path(struct text *t)
{
    for (const char *c = stats_path; *c != 0; c++) {
        char one[2] = {*c, 0};
        if (c[0] == '%' && c[1] == 'p') {
            text_add_number(t, (uint64_t)getpid());
            c++;
        } else {
            text_add(t, one);
            c += c[0] == '%' && c[1] == '%';
        }
    }
}

static void write_file(void)
{
    char path[PATH_OPTION_MOST + 256];
    struct text t;
    text_init(&t, path, sizeof path);
    add_path(&t);
    int error = sheet_replace_own(path, FORM_OPENMETRICS);
    if (error != 0)
        complain("stats_file", path, error);
}

static void print(void)
{
    int error = sheet_write_own(STDERR_FILENO, FORM_TEXT);
    if (error != 0)
        complain("stats", "", error);
}

static bool begin(void) { return !__atomic_exchange_n(&at_work, true, __ATOMIC_ACQUIRE); }

static void on_signal(int number)
{
    (void)number;
    KEEP_ERRNO;
    if (!begin())
        return;
    if (policy.stats_file)
        write_file();
    else
        print();
    store_release(&at_work, false);
}

COLD void statistics_start(void)
{
    KEEP_ERRNO;
    if (policy.watch)
        os_let_watch();
    if (policy.stats_signal == 0)
        return;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    if (sigaction((int)policy.stats_signal, &action, NULL) != 0)
        complain("stats_signal", "no program can handle this signal", errno);
}

COLD void statistics_fork_child(void)
{
    store_relaxed(&at_work, false);
    if (policy.watch)
        os_let_watch();
}

/* Another thread's handler may be at work, or one that called exit: that is not waited for long.
 * Afterwards no handler begins. */
#define WAIT_STEP 10
#define WAIT_MOST 1000

COLD void statistics_end(void)
{
    KEEP_ERRNO;
    for (unsigned waited = 0; !begin() && waited < WAIT_MOST; waited += WAIT_STEP)
        os_let_pass(WAIT_STEP);
    if (policy.stats_file)
        write_file();
    if (policy.stats)
        print();
}
