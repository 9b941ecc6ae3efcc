/* The heap profile as text, in the format of gperftools and jemalloc: a line for each site, with
 * the blocks and bytes in use, in brackets those allocated, and the addresses of its frames. A
 * comment after each line has what the format has no place for. After the sites come the mappings.
 * Figures are estimates of all blocks, not of the samples. The program may work
 * meanwhile: then the sums in the head are a little older than what follows. Async-signal-safe. */
#ifndef HAKMEM_SHEET_PROFILE_LINES_H
#define HAKMEM_SHEET_PROFILE_LINES_H

#include "base/text.h"
#include "profile/samples.h"

/* What all sites are together. */
struct profile_sums {
    struct tally total, live, peak;
    uint64_t rate, lost, memory; /* the option, samples that found no room, bytes of the tables */
    uint64_t pid;                /* as the process knows it; 0: unknown */
};

void profile_sum(struct profile_sums *sums, const struct site *site);

/* Room for any of these. */
#define PROFILE_LINE_MOST (512 + FRAMES_MOST * 19 + SITE_NAME_MOST)

void profile_add_head(struct text *t, const struct profile_sums *sums);
void profile_add_site(struct text *t, const struct profile_sums *sums, const struct site *site);
void profile_add_end(struct text *t, uint64_t sites); /* so many came before */

#endif
