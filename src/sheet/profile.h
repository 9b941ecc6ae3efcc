/* What the samples of a heap profile say: lines of it as text, and how much of the blocks in use
 * was requested. */
#ifndef HAKMEM_SHEET_PROFILE_H
#define HAKMEM_SHEET_PROFILE_H

#include "base/text.h"
#include "profile/noted.h"
#include "profile/samples.h"
#include "sheet/target.h"

/* ---- lines ----
 *
 * The heap profile as text, in the format of gperftools and jemalloc: a line for each site, with
 * the blocks and bytes in use, in brackets those allocated, and the addresses of its frames. A
 * comment after each line has what the format has no place for. After the sites come the mappings.
 * Figures are estimates of all blocks, not of the samples. The program may work
 * meanwhile: then the sums in the head are a little older than what follows. Async-signal-safe. */

/* What all sites are together. */
struct profile_sums {
    struct tally total, live, peak;
    uint64_t rate, lost, memory; /* the option, samples that found no room, bytes of the tables */
    uint64_t pid;                /* as the process knows it; 0: unknown */
    struct course course;        /* all 0: unknown */
    bool lately;                 /* the peak is the one since samples_watch: of this process */
    bool no_errors;              /* an older library's tallies have no variance */
};

void profile_sum(struct profile_sums *sums, const struct site *site);

/* Room for any of these. */
#define PROFILE_LINE_MOST (512 + FRAMES_MOST * 19 + SITE_NAME_MOST)
static_assert(PROFILE_LINE_MOST > 256 + SCRIPT_FUNCTION_MOST + SCRIPT_FILE_MOST, "of a script");
static_assert(PROFILE_LINE_MOST > MODULE_LINES_MOST, "of a module");

void profile_add_head(struct text *t, const struct profile_sums *sums);
void profile_add_site(struct text *t, const struct profile_sums *sums, const struct site *site);
/* After the head: so many ns ago. */
void profile_add_mark(struct text *t, const struct watch_mark *mark, uint64_t ago);
void profile_add_end(struct text *t, uint64_t sites); /* so many came before */

/* Then when the process began, and when this was written: what another one with its number has left
 * is not its own. */
void profile_add_times(struct text *t, struct times times);

/* Before the mappings: what was noted of a module, so many bytes of text. */
void profile_add_module(struct text *t, const char *lines, size_t bytes);

/* After the mappings: where a script's line has its address, as a mapping of a file of this name.
 */
void profile_add_script_line(struct text *t, const struct script_line *line);

/* ---- requested ----
 *
 * How much of the blocks in use the program asked for: the rest is rounding to size classes. Blocks
 * do not store it, but the samples of a heap profile do. So it is an estimate, which there is only
 * where blocks are sampled. */

struct requested {
    uint64_t samples;    /* 0: it is not known, nor are the others */
    double share, error; /* of the bytes of blocks in use; its standard error */
    double blocks;       /* bytes of all blocks that were sampled, or could have been */
};

struct requested requested_from(const struct fill *fill);

/* A share of so many bytes. */
uint64_t requested_of(double share, uint64_t bytes);

#endif
