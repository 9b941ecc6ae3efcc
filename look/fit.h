/* Whether the loader can take the library into a program. */
#ifndef HAKMEM_LOOK_FIT_H
#define HAKMEM_LOOK_FIT_H

enum fit {
    FITS,
    FITS_NOT,        /* what it starts may fit */
    FITS_OTHER_LIBC, /* its loader may end it for that */
    FITS_PRIVILEGED  /* a traced program does not get its privileges */
};

/* Of the program that execvp would execute, or its interpreter. `why` gets a sentence if it does
 * not fit. What can't be read fits. */
enum fit fit_of(const char *program, const char **why);

#endif
