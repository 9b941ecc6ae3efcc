/* operator new and delete.
 *
 * Every form is here. One that is left to the C++ runtime is bound to any other allocator that the
 * program is linked with, and then a block of one heap goes to the delete of the other.
 *
 * A C program that preloads the library has no C++ runtime, so what new needs of it (the
 * new-handler, the throw, and for the nothrow forms the catch) is found by weak names; a program
 * that calls new has them. A part in C++ that a program in C loads later has them too, but weak
 * names do not find them there: then their addresses are looked for when there is no memory.
 *
 * A program may replace some forms and not the others, which then have to call its own: the forms
 * for arrays those for one object, the nothrow forms those that throw, the deletes with a size or
 * nothrow those without. So all are weak (also for the linker, where a static program has its own),
 * and only four have bodies. */
#include "api/cxx.h"

extern "C" {
#include "api/blocks.h"
#include "api/slow.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "front/cache.h"
#include "report/backtrace.h"
}

/* Who takes new from an archive must take malloc from there too: both are one heap. */
#ifdef HAKMEM_ARCHIVE
extern "C" void *malloc(std::size_t);
[[gnu::used]] static void *(*const malloc_too)(std::size_t) = malloc;
#endif

namespace std {
[[IF_THERE, noreturn]] void __throw_bad_alloc();
} // namespace std

namespace {

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

/* A function of the C++ runtime, or null. */
template <typename Function>
Function *of_runtime(Function *linked, const char *name)
{
    return IS_THERE(linked) ? linked : reinterpret_cast<Function *>(module_function(name));
}

/* The program's handler frees memory, or throws, or there is none any more. */
[[gnu::cold, gnu::noinline]] void no_memory()
{
    auto *get_handler = of_runtime(std::get_new_handler, "_ZSt15get_new_handlerv");
    std::new_handler handler = get_handler != nullptr ? get_handler() : nullptr;
    if (handler != nullptr) {
        handler();
        return;
    }
    if (auto *give_up = of_runtime(std::__throw_bad_alloc, "_ZSt17__throw_bad_allocv"))
        give_up();
    __builtin_trap();
}

[[gnu::cold, gnu::noinline]] void *new_slow(size_t n, size_t align)
{
    const caller from = CALLER;
    for (;;) {
        if (void *p = slow_aligned_for(align, n, from))
            return p;
        no_memory();
    }
}

/* Where the forms go that do not end in a fast body. The first call of one decides: with
 * check_functions to functions that note or compare which form allocated the block. As with a jump
 * by the linker's table, what a form without a body calls may be the program's. */
bool decide();

struct Forms {
    void *(*take)(size_t, size_t);
    void *(*take_array)(size_t);
    void *(*take_array_aligned)(size_t, align_val_t);
    void (*give)(void *) noexcept;
    void (*give_array)(void *) noexcept;
    void (*give_array_aligned)(void *, align_val_t) noexcept;
};
extern Forms forms;

template <auto form, typename... Arguments>
void *take_first(Arguments... arguments)
{
    decide();
    return (forms.*form)(arguments...);
}

template <auto form, typename... Arguments>
void give_first(Arguments... arguments) noexcept
{
    decide();
    (forms.*form)(arguments...);
}

Forms forms = {take_first<&Forms::take>,
               take_first<&Forms::take_array>,
               take_first<&Forms::take_array_aligned>,
               give_first<&Forms::give>,
               give_first<&Forms::give_array>,
               give_first<&Forms::give_array_aligned>};

FAST void *new_fast(size_t n)
{
    void *p;
    return likely(malloc_pop(n, &p)) ? p : forms.take(n, 1);
}

FAST void delete_fast(void *p)
{
    if (unlikely(!cache_push(cache_current(), p)))
        forms.give(p);
}

} // namespace

EXPORT void *operator new(size_t n) { return new_fast(n); }
EXPORT void *operator new(size_t n, align_val_t align) { return forms.take(n, size_t(align)); }
EXPORT void operator delete(void *p) noexcept { delete_fast(p); }
EXPORT void operator delete(void *p, align_val_t) noexcept { delete_fast(p); }

EXPORT void *operator new[](size_t n) { return forms.take_array(n); }
EXPORT void *operator new[](size_t n, align_val_t align)
{
    return forms.take_array_aligned(n, align);
}

EXPORT void operator delete[](void *p) noexcept { forms.give_array(p); }
EXPORT void operator delete[](void *p, align_val_t align) noexcept
{
    forms.give_array_aligned(p, align);
}
EXPORT void operator delete(void *p, const std::nothrow_t &) noexcept { operator delete(p); }
EXPORT void operator delete[](void *p, const std::nothrow_t &) noexcept { operator delete[](p); }
EXPORT void operator delete(void *p, align_val_t align, const std::nothrow_t &) noexcept
{
    operator delete(p, align);
}
EXPORT void operator delete[](void *p, align_val_t align, const std::nothrow_t &) noexcept
{
    operator delete[](p, align);
}

/* The forms of this file, whatever the program has in their place. */
extern "C" {
void *new_own(size_t) __attribute__((alias("_Znwm")));
void *new_own_array(size_t) __attribute__((alias("_Znam")));
void *new_own_aligned(size_t, align_val_t) __attribute__((alias("_ZnwmSt11align_val_t")));
void *new_own_array_aligned(size_t, align_val_t) __attribute__((alias("_ZnamSt11align_val_t")));
void delete_own(void *p) noexcept __attribute__((alias("_ZdlPv"), visibility("hidden")));
void delete_own_array(void *p) noexcept __attribute__((alias("_ZdaPv"), visibility("hidden")));
void delete_own_aligned(void *p, align_val_t) noexcept
    __attribute__((alias("_ZdlPvSt11align_val_t"), visibility("hidden")));
void delete_own_array_aligned(void *p, align_val_t) noexcept
    __attribute__((alias("_ZdaPvSt11align_val_t"), visibility("hidden")));
}

namespace {

using plain_delete = void (*)(void *) noexcept;
using aligned_delete = void (*)(void *, align_val_t) noexcept;

/* A program's own operator delete knows what its blocks are. */
bool plain_is_ours() { return static_cast<plain_delete>(operator delete) == delete_own; }
bool aligned_is_ours()
{
    return static_cast<aligned_delete>(operator delete) == delete_own_aligned;
}

bool array_is_ours()
{
    return plain_is_ours() && static_cast<plain_delete>(operator delete[]) == delete_own_array;
}

bool aligned_array_is_ours()
{
    return aligned_is_ours() &&
           static_cast<aligned_delete>(operator delete[]) == delete_own_array_aligned;
}

/* Blocks of a program's own forms are as they make them, and who replaces one may well take all
 * memory by malloc. */
bool all_are_ours()
{
    return new_array_is_ours() && new_array_aligned_is_ours() && array_is_ours() &&
           aligned_array_is_ours();
}

void *take_noted(size_t n, size_t align) { return function_note(new_slow(n, align), MAKER_NEW); }

void *take_array_noted(size_t n) { return function_note(new_slow(n, 1), MAKER_NEW_ARRAY); }

void *take_array_aligned_noted(size_t n, align_val_t align)
{
    return function_note(new_slow(n, size_t(align)), MAKER_NEW_ARRAY);
}

void give_compared(void *p) noexcept
{
    if (function_fits(p, MAKER_NEW, "delete", RETURN_ADDRESS))
        slow_free(p);
}

void give_array_compared(void *p) noexcept
{
    if (function_fits(p, MAKER_NEW_ARRAY, "delete[]", RETURN_ADDRESS))
        slow_free(p);
}

void give_array_aligned_compared(void *p, align_val_t) noexcept
{
    if (function_fits(p, MAKER_NEW_ARRAY, "delete[]", RETURN_ADDRESS))
        slow_free(p);
}

/* slow_free, by a name that says so. */
extern "C" HIDDEN void slow_free_noexcept(void *p) noexcept __asm__("slow_free");

/* After the process's start, which reads the option. */
[[gnu::cold, gnu::noinline]] bool decide()
{
    page_size();
    bool noted = hardening.functions && all_are_ours();
    void *(*take)(size_t, size_t) = noted ? take_noted : new_slow;
    plain_new take_array = noted ? take_array_noted : static_cast<plain_new>(operator new);
    aligned_new take_array_aligned =
        noted ? take_array_aligned_noted : static_cast<aligned_new>(operator new);
    plain_delete give = noted ? give_compared : slow_free_noexcept;
    plain_delete give_array =
        noted ? give_array_compared : static_cast<plain_delete>(operator delete);
    aligned_delete give_array_aligned =
        noted ? give_array_aligned_compared : static_cast<aligned_delete>(operator delete);
    store_relaxed(&forms.take, take);
    store_relaxed(&forms.take_array, take_array);
    store_relaxed(&forms.take_array_aligned, take_array_aligned);
    store_relaxed(&forms.give, give);
    store_relaxed(&forms.give_array, give_array);
    store_relaxed(&forms.give_array_aligned, give_array_aligned);
    return noted;
}

/* A block of a form that does not go by `forms`; null as well. */
void *noted(void *p, enum maker maker)
{
    return unlikely(hardening.functions) && all_are_ours() ? function_note(p, maker) : p;
}

[[gnu::cold, gnu::noinline]] void *nothrow_slow(size_t n, size_t align, enum maker maker)
{
    const caller from = CALLER;
    void *p;
    do
        p = slow_aligned_for(align, n, from);
    while (unlikely(p == nullptr) && handler_returned());
    return noted(p, maker);
}

FAST void *nothrow_fast(size_t n, enum maker maker)
{
    void *p;
    return likely(malloc_pop(n, &p)) ? p : nothrow_slow(n, 1, maker);
}

} // namespace

EXPORT void *operator new(size_t n, const nothrow_t &) noexcept
{
    return likely(new_is_ours()) ? nothrow_fast(n, MAKER_NEW) : null_if_thrown(operator new, n);
}

EXPORT void *operator new[](size_t n, const nothrow_t &) noexcept
{
    return likely(new_array_is_ours()) ? nothrow_fast(n, MAKER_NEW_ARRAY)
                                       : null_if_thrown(operator new[], n);
}

EXPORT void *operator new(size_t n, align_val_t align, const nothrow_t &) noexcept
{
    return likely(new_aligned_is_ours()) ? nothrow_slow(n, size_t(align), MAKER_NEW)
                                         : null_if_aligned_thrown(operator new, n, align);
}

EXPORT void *operator new[](size_t n, align_val_t align, const nothrow_t &) noexcept
{
    return likely(new_array_aligned_is_ours()) ? nothrow_slow(n, size_t(align), MAKER_NEW_ARRAY)
                                               : null_if_aligned_thrown(operator new[], n, align);
}

/* For cxx_hints.cc. */
[[gnu::cold]] void *new_slow_named(size_t n, size_t align, const char *name, size_t token,
                                   enum maker maker)
{
    for (;;) {
        if (void *p = slow_aligned_named(align, n, name, token))
            return noted(p, maker);
        no_memory();
    }
}

/* Forms without a size, called with one, which they do not look at. */
extern "C" {
void delete_ignoring_size(void *p, size_t) noexcept __asm__("_ZdlPv");
void delete_array_ignoring_size(void *p, size_t) noexcept __asm__("_ZdaPv");
HIDDEN void delete_own_ignoring_size(void *p, size_t, align_val_t) noexcept __asm__("delete_own");
}

namespace {

void delete_aligned(void *p, size_t n, align_val_t align) noexcept;
void delete_array_aligned(void *p, size_t n, align_val_t align) noexcept;

/* A wrong size is no reason to free another block: the map knows the class.
 *
 * The forms with a size have to call those without, which may be the program's. They jump to them
 * through these pointers, and so with as many instructions as by the linker's table. With
 * check_sizes the pointers lead to functions that check the size first. */
struct {
    void (*plain)(void *, size_t) noexcept;
    void (*array)(void *, size_t) noexcept;
    void (*aligned)(void *, size_t, align_val_t) noexcept;
    void (*array_aligned)(void *, size_t, align_val_t) noexcept;
} sized = {delete_ignoring_size, delete_array_ignoring_size, delete_aligned, delete_array_aligned};

/* From its first call on, ours is called without its alignment, which it does not look at. */
void delete_aligned(void *p, size_t, align_val_t align) noexcept
{
    if (aligned_is_ours())
        store_relaxed(&sized.aligned, &delete_own_ignoring_size);
    operator delete(p, align);
}

void delete_array_aligned(void *p, size_t, align_val_t align) noexcept
{
    if (aligned_array_is_ours() && !decide())
        store_relaxed(&sized.array_aligned, &delete_own_ignoring_size);
    operator delete[](p, align);
}

void delete_checked(void *p, size_t n) noexcept
{
    if (plain_is_ours())
        sized_free_check(p, n, RETURN_ADDRESS);
    operator delete(p);
}

void delete_array_checked(void *p, size_t n) noexcept
{
    if (array_is_ours())
        sized_free_check(p, n, RETURN_ADDRESS);
    operator delete[](p);
}

void delete_aligned_checked(void *p, size_t n, align_val_t align) noexcept
{
    if (aligned_is_ours())
        aligned_sized_free_check(p, size_t(align), n, RETURN_ADDRESS);
    operator delete(p, align);
}

void delete_array_aligned_checked(void *p, size_t n, align_val_t align) noexcept
{
    if (aligned_array_is_ours())
        aligned_sized_free_check(p, size_t(align), n, RETURN_ADDRESS);
    operator delete[](p, align);
}

} // namespace

/* For malloc.c. */
extern "C" [[gnu::cold, gnu::visibility("hidden")]] void sized_deletes_check()
{
    sized = {delete_checked, delete_array_checked, delete_aligned_checked,
             delete_array_aligned_checked};
}

EXPORT void operator delete(void *p, size_t n) noexcept { sized.plain(p, n); }
EXPORT void operator delete[](void *p, size_t n) noexcept { sized.array(p, n); }
EXPORT void operator delete(void *p, size_t n, align_val_t align) noexcept
{
    sized.aligned(p, n, align);
}
EXPORT void operator delete[](void *p, size_t n, align_val_t align) noexcept
{
    sized.array_aligned(p, n, align);
}
