/* Whether src/profile/python_layouts.c has what a Python's headers say. Compiled against each
 * Python that has them; prints what differs, and ends with 1. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe.h"
#elif PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#endif

#include "profile/python_layouts.h"

static int wrong;

static void compare(const char *what, size_t here, size_t there)
{
    if (here != there) {
        printf("%s of Python %s: %zu, not %zu\n", what, PY_VERSION, there, here);
        wrong = 1;
    }
}
#define FIELD(name, type, member) compare(#name, l->name, offsetof(type, member))

static void compare_frames(const struct python_layout *l)
{
#if PY_VERSION_HEX < 0x030b0000
    FIELD(thread_frame, PyThreadState, frame);
    FIELD(frame_code, PyFrameObject, f_code);
    FIELD(frame_previous, PyFrameObject, f_back);
    FIELD(frame_at, PyFrameObject, f_lasti);
#else
    FIELD(frame_previous, _PyInterpreterFrame, previous);
#endif
#if PY_VERSION_HEX >= 0x030a0000 && PY_VERSION_HEX < 0x030b0000
    FIELD(thread_cframe, PyThreadState, cframe);
    FIELD(cframe_previous, CFrame, previous);
#elif PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
    FIELD(thread_cframe, PyThreadState, cframe);
    FIELD(cframe_previous, _PyCFrame, previous);
    FIELD(cframe_frame, _PyCFrame, current_frame);
    FIELD(frame_code, _PyInterpreterFrame, f_code);
    FIELD(frame_at, _PyInterpreterFrame, prev_instr);
#elif PY_VERSION_HEX >= 0x030d0000
    FIELD(thread_frame, PyThreadState, current_frame);
    FIELD(frame_code, _PyInterpreterFrame, f_executable);
    FIELD(frame_at, _PyInterpreterFrame, instr_ptr);
#endif
#if PY_VERSION_HEX >= 0x030c0000
    FIELD(thread_status, PyThreadState, _status);
    FIELD(frame_owner, _PyInterpreterFrame, owner);
    compare("the shims' owner", PYTHON_SHIM, FRAME_OWNED_BY_FRAME_OBJECT + 1);
#elif PY_VERSION_HEX >= 0x030b0000
    FIELD(frame_entry, _PyInterpreterFrame, is_entry);
#endif
}

static void compare_code(const struct python_layout *l)
{
    FIELD(code_file, PyCodeObject, co_filename);
    FIELD(code_first, PyCodeObject, co_firstlineno);
#if PY_VERSION_HEX >= 0x030b0000
    FIELD(code_name, PyCodeObject, co_qualname);
    FIELD(code_begin, PyCodeObject, co_code_adaptive);
    FIELD(code_complete, PyCodeObject, _co_firsttraceable);
#if defined Py_GIL_DISABLED && PY_VERSION_HEX >= 0x030e0000
    FIELD(code_copies, PyCodeObject, co_tlbc);
    FIELD(frame_copy, _PyInterpreterFrame, tlbc_index);
    compare("the copies", PYTHON_COPIES_AT, offsetof(_PyCodeArray, entries));
#endif
#else
    FIELD(code_name, PyCodeObject, co_name);
#endif
#if PY_VERSION_HEX >= 0x030a0000
    FIELD(code_lines, PyCodeObject, co_linetable);
#else
    FIELD(code_lines, PyCodeObject, co_lnotab);
#endif
}

static void compare_objects(const struct python_layout *l)
{
    FIELD(type, PyObject, ob_type);
    FIELD(length, PyVarObject, ob_size);
    FIELD(length, PyASCIIObject, length);
    FIELD(bytes, PyBytesObject, ob_sval);
    FIELD(text_hash, PyASCIIObject, hash);
    FIELD(text_state, PyASCIIObject, state);
    compare("text_ascii", l->text_ascii, sizeof(PyASCIIObject));
    compare("text_compact", l->text_compact, sizeof(PyCompactUnicodeObject));
    PyASCIIObject text = {.state = {.kind = 1}};
    uint32_t state;
    memcpy(&state, (char *)&text + l->text_state, sizeof state);
    compare("text_kind", 1u << l->text_kind, state);
}

int main(void)
{
#ifdef Py_GIL_DISABLED
    const struct python_layout *l = python_layout(PY_MINOR_VERSION, true);
#else
    const struct python_layout *l = python_layout(PY_MINOR_VERSION, false);
#endif
    if (l == NULL)
        return 77;
    compare_frames(l);
    compare_code(l);
    compare_objects(l);
    return wrong;
}
