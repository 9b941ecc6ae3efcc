/* What the options stats, stats_file and stats_signal ask for: the sheet of the process itself
 * (sheet/own.h), at its end or on a signal. And the option watch. */
#ifndef HAKMEM_LIFE_STATISTICS_H
#define HAKMEM_LIFE_STATISTICS_H

/* After the options are known. No lock is held. */
void statistics_start(void);

/* In the child of a fork. */
void statistics_fork_child(void);

/* The orderly end of the process. */
void statistics_end(void);

#endif
