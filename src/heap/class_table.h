/* Made by tools/classes.py, which gives the reasons: change it there. */
/* clang-format off */
#ifndef HAKMEM_HEAP_CLASS_TABLE_H
#define HAKMEM_HEAP_CLASS_TABLE_H

#define CLASSES 88
#define CLASSES_THIN 40 /* the first: with a second stack */
#define STACKS (CLASSES + CLASSES_THIN)
#define CLASS_MOST 32768
#define CLASS_SMALL 1024 /* up to here by the byte */
#define CLASS_SLICES_FIRST 72
#define CLASS_SLICES_MOST 2097152
#define CLASS_LARGE 76 /* from here on bytes bound the stacks */
#define CLASS_GRAIN 16
#define CLASS_STEP 128 /* sizes above are multiples of it */
#define CLASS_STEPS_FROM 128
#define CLASS_PER_DOUBLING 8
#define CLASS_BIN_FIRST 5
#define CLASS_BIN_BYTES 32
#define CLASS_FIRST_WORDS 1296 /* of all first stacks together */
#define CLASS_RECIPROCAL_BITS 31

#endif
