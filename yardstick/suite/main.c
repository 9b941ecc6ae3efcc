/*
 * suite: runs one row with the malloc that is active and prints one line of
 * JSON. One row a process, so that no row inherits another's heap.
 */
#include "block.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

static const char *const touch_names[] = {"none", "first", "both", "pages"};
static const char *const order_names[] = {"same", "reverse", "shuffled"};
static const char *const tier_names[] = {"standard", "quick", "full"};

static const struct {
    const char *name;
    const struct row *rows;
} groups[] = {
    {"seed", seed_rows},     {"micro", micro_rows},   {"threads", threads_rows},
    {"stress", stress_rows}, {"memory", memory_rows}, {"tail", tail_rows},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void print_usage(FILE *to)
{
    fputs("usage: suite ROW [options]    run one row, print one line of JSON\n"
          "       suite --list           the rows, their parameters, and why\n"
          "       suite --list-json      the same, one JSON object a line\n"
          "       suite --allocator      the library that malloc comes from\n"
          "\n"
          "options (each replaces the row's own value):\n"
          "  --iterations N    turns of the loop, of each thread\n"
          "  --scale F         multiply the row's iterations and its wait, such as 0.1\n"
          "  --seed S          of the random numbers\n"
          "  --slots S         blocks that may live at once, of each thread\n"
          "  --min B --max B   smallest and largest block, bytes (at least 8)\n"
          "  --batch N         blocks handed over at once (queue); times a thread\n"
          "                    replaces all its slots before its successor (larson)\n"
          "  --threads T\n"
          "  --makers N        threads that only allocate (streams)\n"
          "  --touch WHICH     bytes of a new block to write: none, first, both,\n"
          "                    or pages (one in every 4096)\n"
          "  --check YES       stamp every block and verify it when freed: 0 or 1\n"
          "  --wait MS         milliseconds of idleness, in rows that watch one\n"
          "  --pin YES         bind each thread to a processor: 0 or 1\n",
          to);
}

static uint64_t number_read(const char *text, const char *what)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-')
        give_up(EXIT_USAGE, "--%s takes a whole number, not '%s'", what, text);
    return value;
}

/* The parameters that an option of the same name replaces. */
static const struct {
    const char *name;
    size_t at;
    bool is_unsigned; /* else of 64 bits */
} numbers[] = {
    {"iterations", offsetof(struct params, iterations), false},
    {"seed", offsetof(struct params, seed), false},
    {"slots", offsetof(struct params, slots), false},
    {"min", offsetof(struct params, min), false},
    {"max", offsetof(struct params, max), false},
    {"batch", offsetof(struct params, batch), false},
    {"wait", offsetof(struct params, wait), false},
    {"threads", offsetof(struct params, threads), true},
    {"makers", offsetof(struct params, makers), true},
};

static void number_take(struct params *p, size_t which, const char *text)
{
    const uint64_t value = number_read(text, numbers[which].name);
    void *member = (char *)p + numbers[which].at;
    if (numbers[which].is_unsigned)
        *(unsigned *)member = (unsigned)value;
    else
        *(uint64_t *)member = value;
}

static double factor_read(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0.0) || value > 1e6)
        give_up(EXIT_USAGE, "--scale takes a factor above 0, not '%s'", text);
    return value;
}

static enum touch touch_read(const char *text)
{
    for (int i = TOUCH_NONE; i <= TOUCH_PAGES; i++)
        if (strcmp(text, touch_names[i]) == 0)
            return (enum touch)i;
    give_up(EXIT_USAGE, "--touch takes none, first, both or pages, not '%s'", text);
}

struct found {
    const struct row *row;
    const char *group;
};

static struct found row_find(const char *name)
{
    for (size_t g = 0; g < COUNT(groups); g++)
        for (const struct row *r = groups[g].rows; r->name != NULL; r++)
            if (strcmp(r->name, name) == 0)
                return (struct found){r, groups[g].name};
    give_up(EXIT_USAGE, "no row is called '%s'; suite --list shows them", name);
}

/* With what the row leaves out filled in. */
static struct params params_of(const struct row *row)
{
    struct params p = row->params;
    if (p.seed == 0)
        p.seed = 1;
    if (p.slots == 0)
        p.slots = 1;
    if (p.threads == 0)
        p.threads = 1;
    return p;
}

/* The row's parameters as JSON fields, without braces. */
static int params_format(char *text, size_t room, const struct params *p)
{
    return snprintf(text, room,
                    "\"iterations\": %ju, \"seed\": %ju, \"slots\": %ju, \"min\": %ju, "
                    "\"max\": %ju, \"batch\": %ju, \"wait\": %ju, \"threads\": %u, \"makers\": %u, "
                    "\"touch\": \"%s\", \"order\": \"%s\", \"check\": %s, \"pin\": %s",
                    (uintmax_t)p->iterations, (uintmax_t)p->seed, (uintmax_t)p->slots,
                    (uintmax_t)p->min, (uintmax_t)p->max, (uintmax_t)p->batch, (uintmax_t)p->wait,
                    p->threads, p->makers, touch_names[p->touch], order_names[p->order],
                    p->check ? "true" : "false", p->unpin ? "false" : "true");
}

static void list_print(void)
{
    printf("  %-32s %10s %7s %8s %8s %6s %7s %-5s %-8s %-5s  %s\n", "row", "iterations", "slots",
           "min", "max", "batch", "threads", "touch", "order", "check", "why");
    for (size_t g = 0; g < COUNT(groups); g++) {
        printf("%s\n", groups[g].name);
        for (const struct row *r = groups[g].rows; r->name != NULL; r++) {
            const struct params own = params_of(r), *p = &own;
            printf("  %-32s %10ju %7ju %8ju %8ju %6ju %7u %-5s %-8s %-5s  %s\n", r->name,
                   (uintmax_t)p->iterations, (uintmax_t)p->slots, (uintmax_t)p->min,
                   (uintmax_t)p->max, (uintmax_t)p->batch, p->threads, touch_names[p->touch],
                   order_names[p->order], p->check || r->needs_content ? "yes" : "no", r->why);
        }
    }
}

static void list_print_json(void)
{
    char text[512];
    for (size_t g = 0; g < COUNT(groups); g++) {
        for (const struct row *r = groups[g].rows; r->name != NULL; r++) {
            const struct params p = params_of(r);
            params_format(text, sizeof text, &p);
            printf("{\"row\": \"%s\", \"group\": \"%s\", \"family\": \"%s\", \"why\": \"%s\", "
                   "\"tier\": \"%s\", \"judged\": \"%s\", \"needs_content\": %s, "
                   "\"sampled\": %s, \"parameters\": {%s}}\n",
                   r->name, groups[g].name, r->family, r->why, tier_names[r->tier],
                   r->judged != NULL ? r->judged : "time peak", r->needs_content ? "true" : "false",
                   r->sampled ? "true" : "false", text);
        }
    }
}

static void params_validate(const struct params *p)
{
    if (p->min < SMALLEST_BLOCK || p->min > p->max || p->max > UINT32_MAX)
        give_up(EXIT_USAGE, "sizes must satisfy %d <= min <= max < 4 GiB", SMALLEST_BLOCK);
    if (p->slots == 0 || p->slots > UINT32_MAX || p->iterations == 0 || p->threads == 0 ||
        p->threads > 1024)
        give_up(EXIT_USAGE, "iterations, slots and threads (at most 1024) must be positive");
}

/* Formatted on the stack and written at once: stdio would ask the allocator
 * for a buffer, and peak memory is measured in KiB. */
static void row_run(const struct row *row, const char *group, const struct params *p)
{
    char params[512], figures[1024] = "", text[4096];
    struct outcome out = {0};

    long rss_start = status_kib("VmRSS:");
    bool reset = peak_reset();
    row->run(p, &out);
    long rss_end = status_kib("VmRSS:");
    long peak = status_kib("VmHWM:");

    params_format(params, sizeof params, p);
    size_t used = 0;
    for (unsigned i = 0; i < out.figure_count && used < sizeof figures; i++) {
        const struct figure *f = &out.figures[i];
        used += (size_t)snprintf(figures + used, sizeof figures - used,
                                 "%s\"%s\": {\"value\": %.6g, \"unit\": \"%s\"}", i > 0 ? ", " : "",
                                 f->name, f->value, f->unit);
    }
    if (used >= sizeof figures)
        give_up(EXIT_SYSTEM, "the row's figures take more than %zu bytes", sizeof figures);
    double rate = out.seconds > 0 ? (double)out.operations / out.seconds : 0;
    int length = snprintf(
        text, sizeof text,
        "{\"row\": \"%s\", \"group\": \"%s\", \"parameters\": {%s}, \"seconds\": %.6f, "
        "\"cpu_seconds\": %.6f, "
        "\"operations\": %ju, \"ops_per_s\": %.0f, \"ns_per_op\": %.3f, \"checksum\": \"%016jx\", "
        "\"peak_rss_kib\": %ld, \"peak_reset\": %s, \"rss_start_kib\": %ld, \"rss_end_kib\": %ld, "
        "\"minor_faults\": %ld, \"voluntary_switches\": %ld, \"involuntary_switches\": %ld, "
        "\"figures\": {%s}, \"allocator\": \"%s\"}\n",
        row->name, group, params, out.seconds, out.cpu_seconds, (uintmax_t)out.operations, rate,
        rate > 0 ? 1e9 / rate : 0, (uintmax_t)out.checksum, peak, reset ? "true" : "false",
        rss_start, rss_end, out.minor_faults, out.voluntary_switches, out.involuntary_switches,
        figures, allocator_path());
    if ((size_t)length >= sizeof text)
        give_up(EXIT_SYSTEM, "the row's line takes more than %zu bytes", sizeof text);
    if (write(STDOUT_FILENO, text, (size_t)length) != length)
        give_up(EXIT_SYSTEM, "the row's line can't be written: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    /* Those that replace a number come first, as in `numbers`. */
    enum { SCALE = COUNT(numbers), TOUCH, CHECK, PIN, LIST, LIST_JSON, ALLOCATOR, HELP };
    static const char *const others[] = {"scale", "touch", "check", "pin"};
    static const char *const words[] = {"list", "list-json", "allocator", "help"};
    struct option options[HELP + 2] = {{0}};
    for (int i = 0; i <= HELP; i++)
        options[i] = (struct option){i < SCALE  ? numbers[i].name
                                     : i < LIST ? others[i - SCALE]
                                                : words[i - LIST],
                                     i < LIST ? required_argument : no_argument, NULL, i};
    /* Options may stand before the row's name: the first pass finds the name,
     * the second, over the same arguments, overrides that row's parameters. */
    struct found found_row = {0};
    struct params p = {0};
    for (int pass = 0; pass < 2; pass++) {
        int found;
        optind = 0;
        while ((found = getopt_long(argc, argv, "", options, NULL)) != -1) {
            switch (found) {
            case SCALE:
                p.iterations = (uint64_t)((double)p.iterations * factor_read(optarg));
                p.wait = (uint64_t)((double)p.wait * factor_read(optarg));
                break;
            case TOUCH:
                p.touch = touch_read(optarg);
                break;
            case CHECK:
                p.check = number_read(optarg, "check") != 0;
                break;
            case PIN:
                p.unpin = number_read(optarg, "pin") == 0;
                break;
            case LIST:
                list_print();
                return 0;
            case LIST_JSON:
                list_print_json();
                return 0;
            case ALLOCATOR:
                printf("%s\n", allocator_path());
                return 0;
            case HELP:
                print_usage(stdout);
                return 0;
            default:
                if (found >= SCALE) {
                    print_usage(stderr);
                    return EXIT_USAGE;
                }
                number_take(&p, (size_t)found, optarg);
            }
        }
        if (optind + 1 != argc) {
            print_usage(stderr);
            return EXIT_USAGE;
        }
        if (found_row.row == NULL) {
            found_row = row_find(argv[optind]);
            p = params_of(found_row.row);
        }
    }
    if (p.iterations == 0)
        p.iterations = 1; /* scaled to nothing */
    params_validate(&p);
    row_run(found_row.row, found_row.group, &p);
    return 0;
}
