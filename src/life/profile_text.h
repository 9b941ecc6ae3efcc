/* The heap profile as text, in the format of gperftools and jemalloc: a line for each site, with
 * the blocks and bytes in use, in brackets those allocated, and the addresses of its frames; then
 * the mappings. Figures are estimates of all blocks, not of the samples. A comment after each line
 * has what the format has no place for. */
#ifndef HAKMEM_LIFE_PROFILE_TEXT_H
#define HAKMEM_LIFE_PROFILE_TEXT_H

/* Writes it to a descriptor; 0 or an errno; EBUSY while another thread
 * does so. Async-signal-safe. */
int profile_write(int file);

/* To a file that is there in whole or not at all. */
int profile_replace(const char *path);

#endif
