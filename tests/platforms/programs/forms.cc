// Calls every form of operator new, and frees each block by every form of delete that fits. The
// program's own forms, if any, are in replaced.cc. Every block must be hakmem's, and every form
// that the program has replaced must get the calls that the standard says.
//
// HAKMEM_HARD_LIMIT_BYTES is set to LIMIT.
#include "forms.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <vector>

using std::align_val_t;
using std::nothrow;
using std::nothrow_t;
using std::size_t;

extern "C" __attribute__((weak)) size_t malloc_object_size(const void *p);
extern "C" __attribute__((weak)) char *strdup(const char *text) noexcept;
extern "C" __attribute__((weak)) char *strndup(const char *text, size_t n) noexcept;

// Forms with a hint are hakmem's alone, so they are there or not.
enum class __hot_cold_t : uint8_t;
#define WEAK __attribute__((weak))
WEAK void *operator new(size_t, const nothrow_t &, __hot_cold_t) noexcept;
WEAK void *operator new[](size_t, const nothrow_t &, __hot_cold_t) noexcept;
WEAK void *operator new(size_t, align_val_t, const nothrow_t &, __hot_cold_t) noexcept;
WEAK void *operator new[](size_t, align_val_t, const nothrow_t &, __hot_cold_t) noexcept;
extern "C" {
WEAK void *__alloc_token__ZnwmRKSt9nothrow_t(size_t, const nothrow_t &, size_t) noexcept;
WEAK void *__alloc_token__ZnamRKSt9nothrow_t(size_t, const nothrow_t &, size_t) noexcept;
WEAK void *__alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(size_t, align_val_t, const nothrow_t &,
                                                            size_t) noexcept;
WEAK void *__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(size_t, align_val_t, const nothrow_t &,
                                                            size_t) noexcept;
}

namespace {

const size_t LIMIT = size_t(256) << 20, BIG = size_t(160) << 20;
// Above any limit, but not above PTRDIFF_MAX, which compilers refuse to pass.
volatile size_t too_much = size_t(1) << 57;
const __hot_cold_t hot{255};

int failures;

void check(bool good, const char *what, const char *form, size_t detail)
{
    if (good)
        return;
    failures++;
    std::printf("%s: %s (%zu)\n", form, what, detail);
}

struct new_form {
    const char *name;
    int form; // that it is, or calls
    bool throws;
    void *(*take)(size_t n, align_val_t align);
    bool there = true;
};

const new_form news[] = {
    {"new", NEW, true, [](size_t n, align_val_t) { return operator new(n); }},
    {"new[]", NEW_ARRAY, true, [](size_t n, align_val_t) { return operator new[](n); }},
    {"new aligned", NEW_ALIGNED, true, [](size_t n, align_val_t a) { return operator new(n, a); }},
    {"new[] aligned", NEW_ARRAY_ALIGNED, true,
     [](size_t n, align_val_t a) { return operator new[](n, a); }},
    {"new nothrow", NEW_NOTHROW, false,
     [](size_t n, align_val_t) { return operator new(n, nothrow); }},
    {"new[] nothrow", NEW_ARRAY_NOTHROW, false,
     [](size_t n, align_val_t) { return operator new[](n, nothrow); }},
    {"new aligned nothrow", NEW_ALIGNED_NOTHROW, false,
     [](size_t n, align_val_t a) { return operator new(n, a, nothrow); }},
    {"new[] aligned nothrow", NEW_ARRAY_ALIGNED_NOTHROW, false,
     [](size_t n, align_val_t a) { return operator new[](n, a, nothrow); }},
    {"new hot", NEW_NOTHROW, false,
     [](size_t n, align_val_t) { return operator new(n, nothrow, hot); },
     static_cast<void *(*)(size_t, const nothrow_t &, __hot_cold_t) noexcept>(operator new) !=
         nullptr},
    {"new[] hot", NEW_ARRAY_NOTHROW, false,
     [](size_t n, align_val_t) { return operator new[](n, nothrow, hot); },
     static_cast<void *(*)(size_t, const nothrow_t &, __hot_cold_t) noexcept>(operator new[]) !=
         nullptr},
    {"new aligned hot", NEW_ALIGNED_NOTHROW, false,
     [](size_t n, align_val_t a) { return operator new(n, a, nothrow, hot); },
     static_cast<void *(*)(size_t, align_val_t, const nothrow_t &, __hot_cold_t) noexcept>(
         operator new) != nullptr},
    {"new[] aligned hot", NEW_ARRAY_ALIGNED_NOTHROW, false,
     [](size_t n, align_val_t a) { return operator new[](n, a, nothrow, hot); },
     static_cast<void *(*)(size_t, align_val_t, const nothrow_t &, __hot_cold_t) noexcept>(
         operator new[]) != nullptr},
    {"new token", NEW_NOTHROW, false,
     [](size_t n, align_val_t) { return __alloc_token__ZnwmRKSt9nothrow_t(n, nothrow, 7); },
     __alloc_token__ZnwmRKSt9nothrow_t != nullptr},
    {"new[] token", NEW_ARRAY_NOTHROW, false,
     [](size_t n, align_val_t) { return __alloc_token__ZnamRKSt9nothrow_t(n, nothrow, 7); },
     __alloc_token__ZnamRKSt9nothrow_t != nullptr},
    {"new aligned token", NEW_ALIGNED_NOTHROW, false,
     [](size_t n, align_val_t a) {
         return __alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(n, a, nothrow, 7);
     },
     __alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t != nullptr},
    {"new[] aligned token", NEW_ARRAY_ALIGNED_NOTHROW, false,
     [](size_t n, align_val_t a) {
         return __alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(n, a, nothrow, 7);
     },
     __alloc_token__ZnamSt11align_val_tRKSt9nothrow_t != nullptr},
};

struct delete_form {
    int form;
    void (*give)(void *p, size_t n, align_val_t align);
};

const delete_form deletes[] = {
    {DELETE, [](void *p, size_t, align_val_t) { operator delete(p); }},
    {DELETE_SIZED, [](void *p, size_t n, align_val_t) { operator delete(p, n); }},
    {DELETE_NOTHROW, [](void *p, size_t, align_val_t) { operator delete(p, nothrow); }},
    {DELETE_ARRAY, [](void *p, size_t, align_val_t) { operator delete[](p); }},
    {DELETE_ARRAY_SIZED, [](void *p, size_t n, align_val_t) { operator delete[](p, n); }},
    {DELETE_ARRAY_NOTHROW, [](void *p, size_t, align_val_t) { operator delete[](p, nothrow); }},
    {DELETE_ALIGNED, [](void *p, size_t, align_val_t a) { operator delete(p, a); }},
    {DELETE_ALIGNED_SIZED, [](void *p, size_t n, align_val_t a) { operator delete(p, n, a); }},
    {DELETE_ALIGNED_NOTHROW,
     [](void *p, size_t, align_val_t a) { operator delete(p, a, nothrow); }},
    {DELETE_ARRAY_ALIGNED, [](void *p, size_t, align_val_t a) { operator delete[](p, a); }},
    {DELETE_ARRAY_ALIGNED_SIZED,
     [](void *p, size_t n, align_val_t a) { operator delete[](p, n, a); }},
    {DELETE_ARRAY_ALIGNED_NOTHROW,
     [](void *p, size_t, align_val_t a) { operator delete[](p, a, nothrow); }},
};

// The first replaced form that a call of this one comes to, or FORMS. Each calls the next.
int comes_to(int form)
{
    while (form != FORMS && !(replaced & 1u << form))
        form = calls_next[form];
    return form;
}

bool is_hakmems(const void *p, size_t n)
{
    size_t there = malloc_object_size(p);
    return there >= n && there != SIZE_MAX;
}

void give(const new_form &form, void *p, size_t n, align_val_t align, unsigned way)
{
    unsigned first = form.form % 4 == NEW           ? 0
                     : form.form % 4 == NEW_ARRAY   ? 3
                     : form.form % 4 == NEW_ALIGNED ? 6
                                                    : 9;
    const delete_form &by = deletes[first + way];
    unsigned long before[FORMS + 1];
    std::memcpy(before, calls, sizeof before);
    by.give(p, n, align);
    int at = comes_to(by.form);
    check(at == FORMS || calls[at] == before[at] + 1, "its delete did not come to the program's",
          form.name, size_t(by.form));
}

void take_and_give(const new_form &form, size_t n, align_val_t align, unsigned way)
{
    unsigned long before[FORMS + 1];
    std::memcpy(before, calls, sizeof before);
    void *p = form.take(n, align);
    int at = comes_to(form.form);
    for (int i = 0; i < FORMS; i++)
        check(i == at || calls[i] == before[i] || (at != FORMS && i == calls_next[at]),
              "it called another form of the program", form.name, size_t(i));
    check(at == FORMS || calls[at] == before[at] + 1, "it did not come to the program's", form.name,
          size_t(at));
    check(p != nullptr && is_hakmems(p, n), "not a block of hakmem's", form.name, n);
    if (p == nullptr)
        return;
    std::memset(p, 0x5a, n);
    if (form.form % 4 >= NEW_ALIGNED)
        check(uintptr_t(p) % size_t(align) == 0, "not aligned", form.name, n);
    give(form, p, n, align, way);
}

void every_form()
{
    for (const new_form &form : news)
        for (size_t n : {size_t(1), size_t(100), size_t(40) << 10, size_t(3) << 20})
            for (size_t align : {32, 4096})
                for (unsigned way = 0; way < 3; way++)
                    for (int round = 0; form.there && round < 3; round++)
                        take_and_give(form, n, align_val_t{align}, way);
}

int handled;
void *held;

void throw_bad_alloc()
{
    handled++;
    throw std::bad_alloc();
}

void throw_number()
{
    handled++;
    throw 42;
}

void free_memory()
{
    handled++;
    std::free(held);
    held = nullptr;
}

void remove_itself()
{
    handled++;
    std::set_new_handler(nullptr);
}

enum outcome { BLOCK, NOTHING, BAD_ALLOC, NUMBER };

enum outcome outcome_of(const new_form &form, size_t n, void **p)
{
    try {
        *p = form.take(n, align_val_t{64});
        return *p == nullptr ? NOTHING : BLOCK;
    } catch (const std::bad_alloc &) {
        return BAD_ALLOC;
    } catch (int) {
        return NUMBER;
    }
}

const struct {
    const char *name;
    std::new_handler handler;
    int calls;
    enum outcome throwing, nothrow;
} cases[] = {
    {"no handler", nullptr, 0, BAD_ALLOC, NOTHING},
    {"a handler that throws bad_alloc", throw_bad_alloc, 1, BAD_ALLOC, NOTHING},
    {"a handler that throws an int", throw_number, 1, NUMBER, NOTHING},
    {"a handler that frees memory", free_memory, 1, BLOCK, BLOCK},
    {"a handler that removes itself", remove_itself, 1, BAD_ALLOC, NOTHING},
};

void without_memory()
{
    for (const new_form &form : news)
        for (const auto &each : cases) {
            if (!form.there)
                continue;
            bool frees = each.handler == free_memory;
            held = frees ? std::malloc(BIG) : nullptr;
            handled = 0;
            std::set_new_handler(each.handler);
            void *p = nullptr;
            enum outcome found = outcome_of(form, frees ? BIG : too_much, &p);
            std::set_new_handler(nullptr);
            check(found == (form.throws ? each.throwing : each.nothrow), each.name, form.name,
                  found);
            check(handled == each.calls, "calls of the handler", form.name, size_t(handled));
            check(std::uncaught_exceptions() == 0, "an exception is left over", form.name, 0);
            if (p != nullptr)
                give(form, p, BIG, align_val_t{64}, 0);
            std::free(held);
        }
}

// While an exception is on its way another one is thrown and caught inside nothrow new.
void in_a_destructor()
{
    struct in_between {
        ~in_between()
        {
            std::set_new_handler(throw_number);
            check(operator new(too_much, nothrow) == nullptr, "a block", "in a destructor", 0);
            check(std::uncaught_exceptions() == 1, "exceptions", "in a destructor", 0);
            std::set_new_handler(nullptr);
        }
    };
    try {
        in_between object;
        throw 1.5;
    } catch (double number) {
        check(number == 1.5, "another exception", "in a destructor", 0);
    }
}

void algorithms()
{
    std::vector<int> numbers(100000);
    for (size_t i = 0; i < numbers.size(); i++)
        numbers[i] = int(i * 7919 % numbers.size());
    std::stable_sort(numbers.begin(), numbers.end());
    check(std::is_sorted(numbers.begin(), numbers.end()), "not sorted", "stable_sort", 0);
    auto buffer = std::get_temporary_buffer<long>(5000);
    check(is_hakmems(buffer.first, 5000 * sizeof(long)), "not a block of hakmem's",
          "get_temporary_buffer", 0);
    std::return_temporary_buffer(buffer.first);
    for (char *text : {strdup("some text"), strndup("some text and more", 9)}) {
        check(is_hakmems(text, 10) && std::strcmp(text, "some text") == 0, "wrong", "strdup", 0);
        std::free(text);
    }
}

} // namespace

int main()
{
    if (malloc_object_size == nullptr) {
        std::printf("hakmem is not there\n");
        return 2;
    }
    every_form();
    without_memory();
    in_a_destructor();
    algorithms();
    std::printf("%d wrong\n", failures);
    return failures == 0 ? 0 : 1;
}
