/* A module for Python that leaks 8 MiB in one of its functions, and frees as much in another. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 16384

static char *volatile last;

static PyObject *leaks(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    last = malloc(BLOCK); /* here: leaks */
    if (last == NULL)
        return PyErr_NoMemory();
    memset(last, 1, BLOCK);
    Py_RETURN_NONE;
}

static PyObject *frees(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    last = malloc(BLOCK);
    if (last == NULL)
        return PyErr_NoMemory();
    free(last);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"leaks", leaks, METH_NOARGS, NULL},
                                  {"frees", frees, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "plant_extension", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_plant_extension(void) { return PyModule_Create(&module); }
