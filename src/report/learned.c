#include "report/learned.h"

#include "base/text.h"
#include "front/adapt.h"
#include "os/os.h"

static const char *const whys[CAPACITY_REASONS] = {
    [CAPACITY_MISSES] = "it was empty",
    [CAPACITY_OVERFLOWS] = "it was full",
    [CAPACITY_FOREIGN] = "what is freed is other threads'",
    [CAPACITY_DRAINS] = "the thread frees more than it takes again",
    [CAPACITY_AGED] = "nobody needed what it held",
    [CAPACITY_SHARE] = "more threads share what all may keep",
};

static void add_bytes(struct text *t, size_t bytes)
{
    static const struct {
        const char *name;
        size_t bytes;
    } units[] = {{" GiB", GiB}, {" MiB", MiB}, {" KiB", KiB}, {" bytes", 1}};
    unsigned u = 0;
    while (units[u].bytes > 1 && bytes < units[u].bytes)
        u++;
    text_add_number(t, bytes / units[u].bytes);
    text_add(t, units[u].name);
}

static void add_stack(struct text *t, const struct journal_entry *e)
{
    text_add(t, "thread ");
    text_add_number(t, e->thread);
    text_add(t, ", blocks of ");
    text_add_number(t, e->size);
    text_add(t, " bytes: keeps up to ");
    text_add_number(t, e->from);
    text_add(t, " -> ");
    text_add_number(t, e->to);
    text_add(t, ": ");
    text_add(t, whys[e->why]);
}

static void add_compaction(struct text *t, const struct journal_entry *e)
{
    text_add(t, "thread ");
    text_add_number(t, e->thread);
    text_add(t, ", blocks of ");
    text_add_number(t, e->size);
    text_add(t, e->subject == JOURNAL_COMPACTS
                    ? " bytes: begin to compact: most of their slabs is free"
                    : " bytes: compact no more: they are in their places");
}

void learned_print(void)
{
    char line[256];
    struct text t;
    if (policy.learn == 0) {
        text_init(&t, line, sizeof line);
        text_add(&t, "hakmem: learned: nothing, since learn is off\n");
        os_print_error(t.start, t.used);
        return;
    }
    size_t end = journal_count();
    size_t begin = end > JOURNAL_MOST ? end - JOURNAL_MOST : 0;
    text_init(&t, line, sizeof line);
    text_add(&t, "hakmem: learned: ");
    text_add_number(&t, end);
    text_add(&t, " steps");
    text_add(&t, begin > 0 ? ", the last 256 of them:\n" : end > 0 ? ":\n" : "\n");
    os_print_error(t.start, t.used);
    for (size_t number = begin; number < end; number++) {
        struct journal_entry e;
        if (!journal_read(number, &e))
            continue;
        text_init(&t, line, sizeof line);
        text_add(&t, "hakmem: learned: after ");
        add_bytes(&t, e.clock);
        text_add(&t, " freed: ");
        if (e.subject == JOURNAL_STACK)
            add_stack(&t, &e);
        else
            add_compaction(&t, &e);
        text_add(&t, "\n");
        os_print_error(t.start, t.used);
    }
}
