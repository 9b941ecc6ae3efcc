/* What the options stats, stats_file and stats_signal ask for: the sheet of the process itself
 * (sheet/own.h), at its end or on a signal. Also when the heap profile is written, and the option
 * watch. */
#ifndef HAKMEM_LIFE_STATISTICS_H
#define HAKMEM_LIFE_STATISTICS_H

#include "base/policy.h"

/* Whether any of it is asked for. The functions lie apart from what every process executes. */
static inline bool statistics_wanted(void)
{
    return unlikely((policy.stats | policy.stats_file | policy.stats_signal | policy.profile_file |
                     policy.profile_rss | policy.watch) != 0);
}

/* After the options are known. No lock is held. */
void statistics_start(void);

/* In the child of a fork. */
void statistics_fork_child(void);

/* A profile where resident memory has passed the option profile_rss; `now` in milliseconds. No lock
 * is held. */
void statistics_look(size_t now);

/* What the option report_no_memory asks for, after a call for so many bytes has failed. No lock is
 * held. */
void statistics_no_memory(size_t bytes);

/* The orderly end of the process. */
void statistics_end(void);

/* What was learned last, and why: the journal, a line each on standard error, the oldest first. */
void learned_print(void);

#endif
