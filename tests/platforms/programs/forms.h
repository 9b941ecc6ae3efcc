// The forms of operator new and delete, for forms.cc and replaced.cc.
#ifndef FORMS_H
#define FORMS_H

// In each group of four: for one object, for an array, aligned, aligned array.
enum form {
    NEW,
    NEW_ARRAY,
    NEW_ALIGNED,
    NEW_ARRAY_ALIGNED,
    NEW_NOTHROW,
    NEW_ARRAY_NOTHROW,
    NEW_ALIGNED_NOTHROW,
    NEW_ARRAY_ALIGNED_NOTHROW,
    DELETE,
    DELETE_ARRAY,
    DELETE_ALIGNED,
    DELETE_ARRAY_ALIGNED,
    DELETE_SIZED,
    DELETE_ARRAY_SIZED,
    DELETE_ALIGNED_SIZED,
    DELETE_ARRAY_ALIGNED_SIZED,
    DELETE_NOTHROW,
    DELETE_ARRAY_NOTHROW,
    DELETE_ALIGNED_NOTHROW,
    DELETE_ARRAY_ALIGNED_NOTHROW,
    FORMS
};

// What the library's version of each form calls, as the standard says; FORMS: nothing.
const int calls_next[] = {
    FORMS,  NEW,          FORMS,          NEW_ALIGNED,          // new
    NEW,    NEW_ARRAY,    NEW_ALIGNED,    NEW_ARRAY_ALIGNED,    // new nothrow
    FORMS,  DELETE,       FORMS,          DELETE_ALIGNED,       // delete
    DELETE, DELETE_ARRAY, DELETE_ALIGNED, DELETE_ARRAY_ALIGNED, // delete with a size
    DELETE, DELETE_ARRAY, DELETE_ALIGNED, DELETE_ARRAY_ALIGNED, // delete nothrow
};

extern const unsigned replaced;        // a bit for each form that the program has itself
extern unsigned long calls[FORMS + 1]; // of each of them

#endif
