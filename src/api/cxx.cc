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
 * and only four have bodies.
 *
 * At the end are the forms of new with a hint for the allocator, as compilers make calls of them.
 */
#include "api/cxx.h"

extern "C" {
#include "api/blocks.h"
#include "api/slow.h"
#include "base/atomic.h"
#include "base/policy.h"
#include "front/cache.h"
#include "os/module.h"
}

/* Who takes new from an archive must take malloc from there too: both are one heap. */
#ifdef HAKMEM_ARCHIVE
extern "C" void *malloc(std::size_t);
[[gnu::used]] static void *(*const malloc_too)(std::size_t) = malloc;
#endif

namespace std {
[[IF_THERE, noreturn]] void __throw_bad_alloc();
} // namespace std

/* In the shared library they are no weak names, as memcheck replaces none of those; what the loader
 * binds may be the program's all the same (-fsemantic-interposition). */
#ifdef HAKMEM_SHARED
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT __attribute__((visibility("default"), weak))
#endif

/* Weak from their first use on. */
EXPORT void *operator new(std::size_t);
EXPORT void *operator new[](std::size_t);
EXPORT void *operator new(std::size_t, std::align_val_t);
EXPORT void *operator new[](std::size_t, std::align_val_t);

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

constexpr size_t align_of() { return 1; }
constexpr size_t align_of(align_val_t align) { return size_t(align); }

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
#define OWN(form) __attribute__((alias(form), visibility("hidden")))
#define OWN_NEW(form) OWN(form) __attribute__((malloc, alloc_size(1)))
extern "C" {
void *new_own(size_t) OWN_NEW("_Znwm");
void *new_own_array(size_t) OWN_NEW("_Znam");
void *new_own_aligned(size_t, align_val_t) OWN_NEW("_ZnwmSt11align_val_t");
void *new_own_array_aligned(size_t, align_val_t) OWN_NEW("_ZnamSt11align_val_t");
void delete_own(void *p) noexcept OWN("_ZdlPv");
void delete_own_array(void *p) noexcept OWN("_ZdaPv");
void delete_own_aligned(void *p, align_val_t) noexcept OWN("_ZdlPvSt11align_val_t");
void delete_own_array_aligned(void *p, align_val_t) noexcept OWN("_ZdaPvSt11align_val_t");
}

namespace {

using plain_delete = void (*)(void *) noexcept;
using aligned_delete = void (*)(void *, align_val_t) noexcept;

/* Whether a call of this form comes to ours, by way of those that the standard says. A program's
 * own operator delete knows what its blocks are. */
FAST bool new_is_ours() { return static_cast<plain_new>(operator new) == new_own; }

FAST bool new_array_is_ours()
{
    return static_cast<plain_new>(operator new[]) == new_own_array && new_is_ours();
}

FAST bool new_aligned_is_ours()
{
    return static_cast<aligned_new>(operator new) == new_own_aligned;
}

FAST bool new_array_aligned_is_ours()
{
    return static_cast<aligned_new>(operator new[]) == new_own_array_aligned &&
           new_aligned_is_ours();
}

bool plain_is_ours() { return static_cast<plain_delete>(operator delete) == delete_own; }

bool array_is_ours()
{
    return plain_is_ours() && static_cast<plain_delete>(operator delete[]) == delete_own_array;
}

bool aligned_is_ours()
{
    return static_cast<aligned_delete>(operator delete) == delete_own_aligned;
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

template <typename... Align>
void *take_array_noted(size_t n, Align... align)
{
    return function_note(new_slow(n, align_of(align...)), MAKER_NEW_ARRAY);
}

template <enum maker maker, typename... Align>
void give_compared(void *p, Align...) noexcept
{
    const char *function = maker == MAKER_NEW ? "delete" : "delete[]";
    if (function_fits(p, maker, function, RETURN_ADDRESS))
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
    plain_new take_array = noted ? take_array_noted<> : static_cast<plain_new>(operator new);
    aligned_new take_array_aligned =
        noted ? take_array_noted<align_val_t> : static_cast<aligned_new>(operator new);
    plain_delete give = noted ? give_compared<MAKER_NEW> : slow_free_noexcept;
    plain_delete give_array =
        noted ? give_compared<MAKER_NEW_ARRAY> : static_cast<plain_delete>(operator delete);
    aligned_delete give_array_aligned = noted ? give_compared<MAKER_NEW_ARRAY, align_val_t>
                                              : static_cast<aligned_delete>(operator delete);
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
                                         : null_if_thrown(operator new, n, align);
}

EXPORT void *operator new[](size_t n, align_val_t align, const nothrow_t &) noexcept
{
    return likely(new_array_aligned_is_ours()) ? nothrow_slow(n, size_t(align), MAKER_NEW_ARRAY)
                                               : null_if_thrown(operator new[], n, align);
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

template <bool (*is_ours)(), typename... Align>
void delete_checked(void *p, size_t n, Align... align) noexcept
{
    if (is_ours())
        sized_free_check(p, align_of(align...), n, RETURN_ADDRESS);
    if constexpr (is_ours == array_is_ours || is_ours == aligned_array_is_ours)
        operator delete[](p, align...);
    else
        operator delete(p, align...);
}

} // namespace

/* For malloc.c. */
extern "C" [[gnu::cold, gnu::visibility("hidden")]] void sized_deletes_check()
{
    sized = {delete_checked<plain_is_ours>, delete_checked<array_is_ours>,
             delete_checked<aligned_is_ours, align_val_t>,
             delete_checked<aligned_array_is_ours, align_val_t>};
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

/* ---- with a hint ----
 *
 * - with __hot_cold_t, how often the block will be used, as LLVM's memory profile found it. The
 *   hint changes nothing: the thread's stack has the block that was freed last, hot or not.
 * - __size_returning_new, which also says how many bytes the block has.
 * - with the token of Clang's -fsanitize=alloc-token, which becomes a name in heap profiles.
 *
 * What the program has replaced is called in their place; its blocks are its own. */

enum class __hot_cold_t : uint8_t;

struct __sized_ptr_t {
    void *p;
    size_t n;
};

namespace {

[[gnu::cold, gnu::noinline]] void *new_slow_token(size_t n, size_t align, size_t token,
                                                  enum maker maker)
{
    for (;;) {
        if (void *p = slow_aligned_named(align, n, by_token, token))
            return noted(p, maker);
        no_memory();
    }
}

FAST void *new_token(size_t n, size_t token, enum maker maker)
{
    void *p;
    return likely(malloc_pop(n, &p)) ? p : new_slow_token(n, 1, token, maker);
}

using plain_nothrow = void *(*)(size_t, const nothrow_t &) noexcept;
using aligned_nothrow = void *(*)(size_t, align_val_t, const nothrow_t &) noexcept;

template <typename Form, typename... Arguments>
[[gnu::noinline]] void *under_token(size_t token, Form *form, Arguments... arguments)
{
    struct name_text room;
    name_begin(&room, by_token, token);
    void *p = form(arguments...);
    name_end();
    return p;
}

__sized_ptr_t with_size(void *p, size_t n, bool ours)
{
    return {p, ours ? block_usable(p, "__size_returning_new", RETURN_ADDRESS) : n};
}

} // namespace

EXPORT void *operator new(size_t n, __hot_cold_t) { return operator new(n); }
EXPORT void *operator new[](size_t n, __hot_cold_t) { return operator new[](n); }
EXPORT void *operator new(size_t n, align_val_t align, __hot_cold_t)
{
    return operator new(n, align);
}
EXPORT void *operator new[](size_t n, align_val_t align, __hot_cold_t)
{
    return operator new[](n, align);
}
EXPORT void *operator new(size_t n, const nothrow_t &tag, __hot_cold_t) noexcept
{
    return operator new(n, tag);
}
EXPORT void *operator new[](size_t n, const nothrow_t &tag, __hot_cold_t) noexcept
{
    return operator new[](n, tag);
}
EXPORT void *operator new(size_t n, align_val_t align, const nothrow_t &tag, __hot_cold_t) noexcept
{
    return operator new(n, align, tag);
}
EXPORT void *operator new[](size_t n, align_val_t align, const nothrow_t &tag,
                            __hot_cold_t) noexcept
{
    return operator new[](n, align, tag);
}

extern "C" {

EXPORT __sized_ptr_t __size_returning_new(size_t n)
{
    return with_size(operator new(n), n, new_is_ours());
}
EXPORT __sized_ptr_t __size_returning_new_hot_cold(size_t n, __hot_cold_t)
{
    return with_size(operator new(n), n, new_is_ours());
}
EXPORT __sized_ptr_t __size_returning_new_aligned(size_t n, align_val_t align)
{
    return with_size(operator new(n, align), n, new_aligned_is_ours());
}
EXPORT __sized_ptr_t __size_returning_new_aligned_hot_cold(size_t n, align_val_t align,
                                                           __hot_cold_t)
{
    return with_size(operator new(n, align), n, new_aligned_is_ours());
}

EXPORT void *__alloc_token__Znwm(size_t n, size_t token)
{
    return likely(new_is_ours()) ? new_token(n, token, MAKER_NEW) : operator new(n);
}
EXPORT void *__alloc_token__Znam(size_t n, size_t token)
{
    return likely(new_array_is_ours()) ? new_token(n, token, MAKER_NEW_ARRAY) : operator new[](n);
}
EXPORT void *__alloc_token__ZnwmSt11align_val_t(size_t n, align_val_t align, size_t token)
{
    return likely(new_aligned_is_ours()) ? new_slow_token(n, size_t(align), token, MAKER_NEW) :
                                         operator new(n, align);
}
EXPORT void *__alloc_token__ZnamSt11align_val_t(size_t n, align_val_t align, size_t token)
{
    return likely(new_array_aligned_is_ours())
               ? new_slow_token(n, size_t(align), token, MAKER_NEW_ARRAY)
               :
               operator new[](n, align);
}
EXPORT void *__alloc_token__ZnwmRKSt9nothrow_t(size_t n, const nothrow_t &tag,
                                               size_t token) noexcept
{
    return under_token(token, static_cast<plain_nothrow>(operator new), n, tag);
}
EXPORT void *__alloc_token__ZnamRKSt9nothrow_t(size_t n, const nothrow_t &tag,
                                               size_t token) noexcept
{
    return under_token(token, static_cast<plain_nothrow>(operator new[]), n, tag);
}
EXPORT void *__alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(size_t n, align_val_t align,
                                                              const nothrow_t &tag,
                                                              size_t token) noexcept
{
    return under_token(token, static_cast<aligned_nothrow>(operator new), n, align, tag);
}
EXPORT void *__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(size_t n, align_val_t align,
                                                              const nothrow_t &tag,
                                                              size_t token) noexcept
{
    return under_token(token, static_cast<aligned_nothrow>(operator new[]), n, align, tag);
}
}
