/* Where options come from. */
#ifndef HAKMEM_OPTIONS_SOURCES_H
#define HAKMEM_OPTIONS_SOURCES_H

/* Reads /etc/hakmem.conf, then the file that HAKMEM_CONFIG names, then the environment; the later
 * wins. What is wrong gets a line on standard error and leaves its option as it was. A variable
 * that resembles no option is somebody else's. A program with raised privileges reads the first
 * alone, of it only what makes the program safer, and says nothing. Called once, after os_start. */
void options_start(void);

#endif
