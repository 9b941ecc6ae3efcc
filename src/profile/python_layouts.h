/* Where CPython has what tells its frames, by its minor version, and by whether it has the GIL. In
 * bytes; 0: it has no such field. On 64-bit Linux, where no release has changed it so far.
 * tests/profile/python_layouts.c compares this with the headers of a Python. */
#ifndef HAKMEM_PROFILE_PYTHON_LAYOUTS_H
#define HAKMEM_PROFILE_PYTHON_LAYOUTS_H

#include "base/defs.h"

#define PYTHON_MINOR_FIRST 9
#define PYTHON_MINOR_LAST 14
#define PYTHON_MINOR_FREE 13 /* the first with builds without the GIL */

struct python_layout {
    /* of a thread */
    uint16_t thread_frame;  /* the innermost frame; 0: the cframe has it */
    uint16_t thread_cframe; /* the innermost cframe: one for each call of the evaluator, in it */
    uint16_t thread_status; /* a bit of it says that the thread is at work; 0: no such field */
    uint16_t cframe_frame, cframe_previous;
    bool cframe_has_frame; /* or else only frames are in a list */
    /* of a frame */
    uint16_t frame_code, frame_previous, frame_at; /* at: which instruction */
    uint16_t frame_owner; /* a byte: SHIM and above is no frame of a function */
    uint16_t frame_entry; /* a byte: the evaluator was called for it */
    uint16_t frame_copy;  /* which copy of the instructions it runs; a number of 32 bits */
    /* of a code object */
    uint16_t code_name, code_file, code_first, code_lines;
    uint16_t code_begin;    /* the instructions; 0: a frame has a number and no address */
    uint16_t code_copies;   /* an array of those that threads have for themselves */
    uint16_t code_complete; /* before this instruction a frame is being made; a number of 32 bits */
    uint8_t units;          /* bytes of code that a frame's number stands for */
    uint8_t line_format;    /* enum line_format */
    /* of all objects, and of those that have a length, as bytes */
    uint16_t type, length, bytes;
    /* of a string */
    uint16_t text_hash; /* all bits set: it was not asked for yet */
    uint16_t text_state;
    uint8_t text_kind; /* a bit of its state: the first that says what letters are */
    uint16_t text_ascii, text_compact; /* where the letters begin */
};

#define PYTHON_SHIM 3

/* Of an array of copies of code, after their number. */
#define PYTHON_COPIES_AT 8

/* Null for a version that is not known. */
const struct python_layout *python_layout(unsigned minor, bool free_threaded);

/* ---- lines ----
 *
 * Which line an instruction belongs to: the tables of code objects, in the three formats that they
 * have had. Pure functions; any bytes may be passed. */

enum line_format {
    LINES_LNOTAB,   /* 3.9: pairs of bytes, how much further in the code, and in lines */
    LINES_RANGES,   /* 3.10: the same, of ranges, some of which are of no line (PEP 626) */
    LINES_LOCATIONS /* 3.11: entries of varying length, with columns (PEP 657) */
};

/* `at`: bytes from the code's begin; 0 where it has no line. */
uint32_t line_in_table(enum line_format format, const uint8_t *table, size_t bytes, uint32_t first,
                       uint32_t at);

#endif
