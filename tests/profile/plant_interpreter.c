/* As much of a Python as its frames need, laid out as python_layouts.h says, so that what reads
 * them is tried for builds that are not here. profile_plant_interpreter MINOR FREE: whether it is
 * without the GIL. In two functions of the file plant.py, of which one called the other, it
 * allocates a block of 20001 bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/python_layouts.h"

#define SHOWN __attribute__((visibility("default")))
#define NOINLINE __attribute__((noinline))
#define OBJECT 512 /* bytes, more than any has */
#define KIND_ONE_BYTE 1u
#define COMPACT_ASCII (3u << 3)
#define UNITS 8 /* of code, that an entry of a table of lines is for */
#define FIRST 10
#define STEP 2

SHOWN unsigned long Py_Version;
SHOWN struct {
    char cookie[8];
    uint64_t version, free_threaded;
} _PyRuntime = {"xdebugpy", 0, 0};
SHOWN char PyCode_Type[8], PyUnicode_Type[8];

static const struct python_layout *l;
static char thread[OBJECT];

static void put(void *object, size_t at, const void *value, size_t bytes)
{
    memcpy((char *)object + at, value, bytes);
}

static void put_word(void *object, size_t at, uintptr_t value)
{
    put(object, at, &value, sizeof value);
}

static void put_half(void *object, size_t at, uint32_t value)
{
    put(object, at, &value, sizeof value);
}

SHOWN void *PyGILState_GetThisThreadState(void) { return thread; }
SHOWN int Py_IsFinalizing(void) { return 0; }

static void *text_new(const char *letters)
{
    char *text = calloc(1, OBJECT);
    put_word(text, l->type, (uintptr_t)PyUnicode_Type);
    put_word(text, l->length, strlen(letters));
    put_word(text, l->text_hash, (uintptr_t)-1);
    put_half(text, l->text_state, (KIND_ONE_BYTE | COMPACT_ASCII) << l->text_kind);
    strcpy(text + l->text_ascii, letters);
    return text;
}

/* The first lines of a function: UNITS of code on the first, and as many two lines on. */
static void *lines_new(void)
{
    static const uint8_t table[] = {0x80 | 10 << 3 | (UNITS - 1), 1, 1,
                                    0x80 | 12 << 3 | (UNITS - 1), 1, 1};
    char *bytes = calloc(1, OBJECT);
    put_word(bytes, l->length, sizeof table);
    put(bytes, l->bytes, table, sizeof table);
    return bytes;
}

static char *code_new(const char *name, char *copy)
{
    char *code = calloc(1, OBJECT);
    put_word(code, l->type, (uintptr_t)PyCode_Type);
    put_word(code, l->code_name, (uintptr_t)text_new(name));
    put_word(code, l->code_file, (uintptr_t)text_new("plant.py"));
    put_word(code, l->code_lines, (uintptr_t)lines_new());
    put_half(code, l->code_first, FIRST);
    if (l->code_copies != 0) {
        uintptr_t *copies = calloc(3, sizeof *copies);
        copies[0] = 2;
        copies[1] = (uintptr_t)(code + l->code_begin);
        copies[2] = (uintptr_t)copy;
        put_word(code, l->code_copies, (uintptr_t)copies);
    }
    return code;
}

/* At the second of its lines; in its thread's copy of the code, where it has one. */
static char *frame_new(const char *function, const char *previous)
{
    char *frame = calloc(1, OBJECT);
    char *copy = calloc(1, OBJECT);
    char *code = code_new(function, copy);
    char *begin = l->code_copies != 0 ? copy : code + l->code_begin;
    put_word(frame, l->frame_code, (uintptr_t)code);
    put_word(frame, l->frame_previous, (uintptr_t)previous);
    put_word(frame, l->frame_at, (uintptr_t)(begin + (UNITS + 1) * 2));
    if (l->frame_copy != 0)
        put_half(frame, l->frame_copy, 1);
    return frame;
}

static void *volatile kept;

SHOWN NOINLINE void _PyEval_EvalFrameDefault(void)
{
    char shim[OBJECT] = {0};
    shim[l->frame_owner] = PYTHON_SHIM;
    put_word(thread, l->thread_frame, (uintptr_t)frame_new("inner", frame_new("outer", shim)));
    put_half(thread, l->thread_status, 1 << 4);
    kept = malloc(20001);
    put_word(thread, l->thread_frame, 0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    unsigned minor = (unsigned)atoi(argv[1]);
    _PyRuntime.free_threaded = (uint64_t)atoi(argv[2]);
    Py_Version = 0x030000f0 | minor << 16;
    l = python_layout(minor, _PyRuntime.free_threaded != 0);
    if (l == NULL)
        return 3;
    _PyEval_EvalFrameDefault();
    return 0;
}
