// operator new with hints: hot and cold, with the size, and with the tokens of Clang's
// -fsanitize=alloc-token; and all of them in a program that replaces the plain forms, when
// HINTS_REPLACED is defined. The test sets HAKMEM_PROFILE_RATE to 4 KiB.
#include "check.h"

#include <hakmem/hakmem.h>
#include <new>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using std::align_val_t;
using std::nothrow;
using std::nothrow_t;
using std::size_t;

enum class __hot_cold_t : uint8_t;
void *operator new(size_t, __hot_cold_t);
void *operator new[](size_t, __hot_cold_t);
void *operator new(size_t, const nothrow_t &, __hot_cold_t) noexcept;
void *operator new[](size_t, const nothrow_t &, __hot_cold_t) noexcept;
void *operator new(size_t, align_val_t, __hot_cold_t);
void *operator new[](size_t, align_val_t, __hot_cold_t);
void *operator new(size_t, align_val_t, const nothrow_t &, __hot_cold_t) noexcept;
void *operator new[](size_t, align_val_t, const nothrow_t &, __hot_cold_t) noexcept;

struct __sized_ptr_t {
    void *p;
    size_t n;
};

extern "C" {
__sized_ptr_t __size_returning_new(size_t);
__sized_ptr_t __size_returning_new_hot_cold(size_t, __hot_cold_t);
__sized_ptr_t __size_returning_new_aligned(size_t, align_val_t);
__sized_ptr_t __size_returning_new_aligned_hot_cold(size_t, align_val_t, __hot_cold_t);
void *__alloc_token__Znwm(size_t, size_t);
void *__alloc_token__Znam(size_t, size_t);
void *__alloc_token__ZnwmRKSt9nothrow_t(size_t, const nothrow_t &, size_t) noexcept;
void *__alloc_token__ZnamRKSt9nothrow_t(size_t, const nothrow_t &, size_t) noexcept;
void *__alloc_token__ZnwmSt11align_val_t(size_t, align_val_t, size_t);
void *__alloc_token__ZnamSt11align_val_t(size_t, align_val_t, size_t);
void *__alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(size_t, align_val_t, const nothrow_t &,
                                                       size_t) noexcept;
void *__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(size_t, align_val_t, const nothrow_t &,
                                                       size_t) noexcept;
}

namespace {

size_t calls; // of the replaced forms
}

#ifdef HINTS_REPLACED
// Blocks that begin 64 bytes into those of malloc: none of the allocator's own may come to them.
void *operator new(size_t n)
{
    calls++;
    char *p = static_cast<char *>(do_malloc(n + 64));
    return p == nullptr ? throw std::bad_alloc() : p + 64;
}
void operator delete(void *p) noexcept
{
    if (p != nullptr)
        do_free(static_cast<char *>(p) - 64);
}
void operator delete(void *p, size_t) noexcept { operator delete(p); }
void *operator new(size_t n, align_val_t align)
{
    calls++;
    void *p = do_aligned_alloc(size_t(align), n);
    return p == nullptr ? throw std::bad_alloc() : p;
}
void operator delete(void *p, align_val_t) noexcept { do_free(p); }
void operator delete(void *p, size_t, align_val_t) noexcept { do_free(p); }
const bool replaced = true;
#else
const bool replaced = false;
#endif

namespace {

const size_t sizes[] = {0, 1, 24, 1000, 1025, 32768, 40000, 300000, 3000000};
const size_t TOO_MUCH = size_t(PTRDIFF_MAX) + 1;
const __hot_cold_t hints[] = {__hot_cold_t(0), __hot_cold_t(128), __hot_cold_t(255)};

void good_block(void *p, size_t n, size_t align)
{
    NEED("new", p);
    CHECK_ALIGNED(p, align);
    pattern_fill(p, n, 1);
    CHECK_PATTERN(p, n, 1);
}

void expect_replaced(size_t expected)
{
    CHECK_SIZE("calls of the replaced forms", calls, replaced ? expected : 0);
    calls = 0;
}

TEST(hot_and_cold)
{
    for (size_t n : sizes)
        for (__hot_cold_t hint : hints) {
            const align_val_t align{256};
            calls = 0;
            void *plain[] = {operator new(n, hint), operator new(n, nothrow, hint)};
            void *array[] = {operator new[](n, hint), operator new[](n, nothrow, hint)};
            void *aligned[] = {operator new(n, align, hint), operator new(n, align, nothrow, hint),
                                                             operator new[](n, align, hint),
                                                             operator new[](n, align, nothrow,
                                                                            hint)};
            expect_replaced(8);
            for (void *p : plain) {
                good_block(p, n, 16);
                operator delete(p, n);
            }
            for (void *p : array) {
                good_block(p, n, 16);
                operator delete[](p);
            }
            for (int i = 0; i < 4; i++) {
                good_block(aligned[i], n, 256);
                if (i < 2)
                    operator delete(aligned[i], n, align);
                else
                    operator delete[](aligned[i], align);
            }
        }
}

TEST(with_the_size)
{
    for (size_t n : sizes) {
        const align_val_t align{128};
        calls = 0;
        __sized_ptr_t all[] = {__size_returning_new(n), __size_returning_new_hot_cold(n, hints[0]),
                               __size_returning_new_aligned(n, align),
                               __size_returning_new_aligned_hot_cold(n, align, hints[2])};
        expect_replaced(4);
        for (int i = 0; i < 4; i++) {
            CHECK(replaced ? all[i].n == n : all[i].n >= n && all[i].n == do_usable_size(all[i].p),
                  "the size of a block of %zu: found %zu", n, all[i].n);
            good_block(all[i].p, all[i].n, i < 2 ? 16 : 128);
            if (i < 2)
                operator delete(all[i].p, all[i].n);
            else
                operator delete(all[i].p, all[i].n, align);
        }
    }
}

template <typename Plain, typename Nothrow, typename Aligned, typename AlignedNothrow>
void token_forms(Plain plain, Nothrow without, Aligned aligned, AlignedNothrow aligned_without,
                 bool array)
{
    const align_val_t align{512};
    for (size_t n : sizes) {
        calls = 0;
        void *all[] = {plain(n), without(n, nothrow), aligned(n, align),
                       aligned_without(n, align, nothrow)};
        expect_replaced(4);
        for (int i = 0; i < 4; i++) {
            good_block(all[i], n, i < 2 ? 16 : 512);
            if (array)
                i < 2 ? operator delete[](all[i]) : operator delete[](all[i], align);
            else
                i < 2 ? operator delete(all[i]) : operator delete(all[i], align);
        }
    }
    CHECK_NULL("nothrow of too much", without(TOO_MUCH, nothrow));
    CHECK_NULL("nothrow of too much", aligned_without(TOO_MUCH, align, nothrow));
    int thrown = 0;
    try {
        plain(TOO_MUCH);
    } catch (const std::bad_alloc &) {
        thrown++;
    }
    try {
        aligned(TOO_MUCH, align);
    } catch (const std::bad_alloc &) {
        thrown++;
    }
    CHECK_SIZE("bad_alloc thrown", size_t(thrown), 2);
}

TEST(with_a_token)
{
    token_forms(
        [](size_t n) { return __alloc_token__Znwm(n, 5); },
        [](size_t n, const nothrow_t &t) { return __alloc_token__ZnwmRKSt9nothrow_t(n, t, 5); },
        [](size_t n, align_val_t a) { return __alloc_token__ZnwmSt11align_val_t(n, a, 5); },
        [](size_t n, align_val_t a, const nothrow_t &t) {
            return __alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(n, a, t, 5);
        },
        false);
    token_forms(
        [](size_t n) { return __alloc_token__Znam(n, 5); },
        [](size_t n, const nothrow_t &t) { return __alloc_token__ZnamRKSt9nothrow_t(n, t, 5); },
        [](size_t n, align_val_t a) { return __alloc_token__ZnamSt11align_val_t(n, a, 5); },
        [](size_t n, align_val_t a, const nothrow_t &t) {
            return __alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(n, a, t, 5);
        },
        true);
}

int handled;

void handler()
{
    if (++handled == 3)
        std::set_new_handler(nullptr);
}

TEST(the_handler_is_called)
{
    handled = 0;
    std::set_new_handler(handler);
    CHECK_NULL("nothrow", __alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(
                              TOO_MUCH, align_val_t{32}, nothrow, 1));
    CHECK_SIZE("calls of the new-handler", size_t(handled), replaced ? 0 : 3);
    handled = 0;
    std::set_new_handler(handler);
    bool thrown = false;
    try {
        __alloc_token__Znwm(TOO_MUCH, 9);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown, "bad_alloc after the handler gave up: found none");
    CHECK_SIZE("calls of the new-handler", size_t(handled), replaced ? 0 : 3);
    std::set_new_handler(nullptr);
}

TEST(a_profile_has_the_tokens)
{
    if (replaced)
        return;
    const align_val_t align{64};
    hakmem_profile_start();
    for (int i = 0; i < 2000; i++) {
        operator delete(__alloc_token__Znwm(1000, 1001));
        operator delete[](__alloc_token__Znam(1000, 1002));
        operator delete(__alloc_token__ZnwmRKSt9nothrow_t(1000, nothrow, 1003));
        operator delete[](__alloc_token__ZnamRKSt9nothrow_t(1000, nothrow, 1004));
        operator delete(__alloc_token__ZnwmSt11align_val_t(1000, align, 1005), align);
        operator delete[](__alloc_token__ZnamSt11align_val_t(1000, align, 1006), align);
        operator delete(
            __alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t(1000, align, nothrow, 1007), align);
        operator delete[](
            __alloc_token__ZnamSt11align_val_tRKSt9nothrow_t(1000, align, nothrow, 1008), align);
    }
    hakmem_profile_stop();
    std::string text(4 * MiB, '\0');
    int file = memfd_create("profile", 0);
    CHECK_ERROR("hakmem_profile_write", hakmem_profile_write(file), 0);
    ssize_t length = pread(file, &text[0], text.size(), 0);
    close(file);
    text.resize(length > 0 ? size_t(length) : 0);
    for (const char *name : {"1001", "1002", "1003", "1004", "1005", "1006", "1007", "1008"})
        CHECK(text.find("# name token " + std::string(name) + "\n") != std::string::npos,
              "a site of token %s: found none", name);
}

TEST(it_serves_while_a_profile_is_on)
{
    CHECK_ERROR("start", hakmem_profile_start(), 0);
    hot_and_cold();
    with_the_size();
    with_a_token();
    the_handler_is_called();
    CHECK_ERROR("stop", hakmem_profile_stop(), 0);
    CHECK_SIZE("hakmem_check", size_t(hakmem_check()), 0);
}

} // namespace

int main() { return tests_main("hints"); }
