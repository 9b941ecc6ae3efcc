/* The heap profile as text (sheet/profile_lines.h). */
#ifndef HAKMEM_LIFE_PROFILE_TEXT_H
#define HAKMEM_LIFE_PROFILE_TEXT_H

/* Writes it to a descriptor; 0 or an errno; EBUSY while another thread does so. Async-signal-safe.
 */
int profile_write(int file);

/* To a file that is there in whole or not at all. */
int profile_replace(const char *path);

#endif
