// Every form of operator new and delete, the new-handler's loop, and what is thrown (trap 16).
#include "check.h"

#include <dlfcn.h>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::align_val_t;
using std::nothrow;
using std::size_t;

// A compiler may leave out a new whose block it sees deleted; not one that passes through here.
void *volatile sink;

void *through(void *p)
{
    sink = p;
    return sink;
}

void good_block(void *p, size_t align, size_t n)
{
    NEED("operator new", p);
    CHECK_ALIGNED(p, align < 16 ? 16 : align);
    size_t usable = do_usable_size(p);
    CHECK(usable >= n && usable <= 2 * n + 2 * align + 65536,
          "usable size of new(%zu): expected that, found %zu", n, usable);
    pattern_fill(p, n, 1);
    CHECK_PATTERN(p, n, 1);
}

const size_t sizes[] = {0, 1, 8, 24, 64, 1000, 4096, 32768, 40000, 300000, 3000000};
const size_t aligns[] = {32, 64, 256, 4096, 65536, 1048576};

TEST(plain_forms)
{
    for (size_t n : sizes) {
        void *p[8];
        for (int i = 0; i < 4; i++) {
            p[i] = through(i < 2 ? ::operator new(n) : ::operator new(n, nothrow));
            p[4 + i] = through(i < 2 ? ::operator new[](n) : ::operator new[](n, nothrow));
        }
        for (void *each : p)
            good_block(each, 16, n);
        ::operator delete(p[0]);
        ::operator delete(p[1], n);
        ::operator delete(p[2], nothrow);
        ::operator delete(p[3]);
        ::operator delete[](p[4]);
        ::operator delete[](p[5], n);
        ::operator delete[](p[6], nothrow);
        ::operator delete[](p[7]);
    }
}

TEST(aligned_forms)
{
    for (size_t n : sizes) {
        for (size_t a : aligns) {
            const align_val_t align{a};
            void *p[8];
            for (int i = 0; i < 4; i++) {
                p[i] =
                    through(i < 2 ? ::operator new(n, align) : ::operator new(n, align, nothrow));
                p[4 + i] = through(i < 2 ? ::operator new[](n, align)
                                         : ::operator new[](n, align, nothrow));
            }
            for (void *each : p)
                good_block(each, a, n);
            ::operator delete(p[0], align);
            ::operator delete(p[1], n, align);
            ::operator delete(p[2], align, nothrow);
            ::operator delete(p[3], align);
            ::operator delete[](p[4], align);
            ::operator delete[](p[5], n, align);
            ::operator delete[](p[6], align, nothrow);
            ::operator delete[](p[7], align);
        }
    }
}

TEST(delete_of_null_does_nothing)
{
    errno = 4321;
    ::operator delete(through(nullptr));
    ::operator delete(through(nullptr), size_t(100));
    ::operator delete(through(nullptr), nothrow);
    ::operator delete (through(nullptr), align_val_t{64});
    ::operator delete (through(nullptr), size_t(100), align_val_t{64});
    ::operator delete (through(nullptr), align_val_t{64}, nothrow);
    ::operator delete[](through(nullptr));
    ::operator delete[](through(nullptr), size_t(100));
    ::operator delete[](through(nullptr), nothrow);
    ::operator delete[](through(nullptr), align_val_t{64});
    ::operator delete[](through(nullptr), size_t(100), align_val_t{64});
    ::operator delete[](through(nullptr), align_val_t{64}, nothrow);
    CHECK_ERROR("errno after delete of null", errno, 4321);
}

TEST(new_zero_is_unique)
{
    void *a = through(::operator new(0)), *b = through(::operator new(0));
    CHECK(a != nullptr && b != nullptr && a != b, "new(0) twice: expected two blocks, found %p %p",
          a, b);
    ::operator delete(a);
    ::operator delete(b);
}

// Memory of new is malloc's: usable by realloc, though no program should.
TEST(new_and_malloc_are_one_heap)
{
    if (getenv("HAKMEM_CHECK_FUNCTIONS") != nullptr)
        return;
    void *p = through(::operator new(100));
    pattern_fill(p, 100, 2);
    p = NEED("realloc of a block of new", do_realloc(p, 5000));
    CHECK_PATTERN(p, 100, 2);
    do_free(p);
}

// Bounded by no machine; not above PTRDIFF_MAX, which compilers refuse to pass.
volatile size_t too_much = size_t(1) << 57;

int handler_calls;

void handler_that_gives_up()
{
    if (++handler_calls == 5)
        std::set_new_handler(nullptr);
}

void handler_that_throws()
{
    if (++handler_calls == 3)
        throw std::bad_alloc();
}

struct own_exception {};

void handler_that_throws_its_own()
{
    handler_calls++;
    throw own_exception();
}

// The exception that f ends with: 0 none, 1 bad_alloc, 2 own_exception, 3 another.
template <typename F>
int thrown_by(F f)
{
    try {
        f();
    } catch (const std::bad_alloc &) {
        return 1;
    } catch (const own_exception &) {
        return 2;
    } catch (...) {
        return 3;
    }
    return 0;
}

TEST(bad_alloc_without_a_handler)
{
    std::set_new_handler(nullptr);
    CHECK_SIZE("exception of new", thrown_by([] { through(::operator new(too_much)); }), 1);
    CHECK_SIZE("exception of new[]", thrown_by([] { through(::operator new[](too_much)); }), 1);
    CHECK_SIZE("exception of aligned new",
               thrown_by([] { through(::operator new (too_much, align_val_t{64})); }), 1);
    CHECK_SIZE("exception of aligned new[]",
               thrown_by([] { through(::operator new[](too_much, align_val_t{64})); }), 1);
    CHECK_NULL("nothrow new", ::operator new(too_much, nothrow));
    CHECK_NULL("nothrow new[]", ::operator new[](too_much, nothrow));
    CHECK_NULL("nothrow aligned new", ::operator new (too_much, align_val_t{64}, nothrow));
    CHECK_NULL("nothrow aligned new[]", ::operator new[](too_much, align_val_t{64}, nothrow));
}

TEST(handler_is_called_until_it_gives_up)
{
    const auto try_all = [](int form) {
        switch (form) {
        case 0:
            return through(::operator new(too_much));
        case 1:
            return through(::operator new[](too_much));
        case 2:
            return through(::operator new (too_much, align_val_t{128}));
        case 3:
            return through(::operator new[](too_much, align_val_t{128}));
        case 4:
            return through(::operator new(too_much, nothrow));
        case 5:
            return through(::operator new[](too_much, nothrow));
        case 6:
            return through(::operator new (too_much, align_val_t{128}, nothrow));
        default:
            return through(::operator new[](too_much, align_val_t{128}, nothrow));
        }
    };
    for (int form = 0; form < 8; form++) {
        size_t expected = form < 4 ? 1 : 0;
        handler_calls = 0;
        std::set_new_handler(handler_that_gives_up);
        CHECK_SIZE("exception when the handler gives up", thrown_by([&] { try_all(form); }),
                   expected);
        CHECK_SIZE("calls of the handler", handler_calls, 5);

        handler_calls = 0;
        std::set_new_handler(handler_that_throws);
        CHECK_SIZE("exception of the handler", thrown_by([&] { try_all(form); }), expected);
        CHECK_SIZE("calls of the handler", handler_calls, 3);
    }
    handler_calls = 0;
    std::set_new_handler(handler_that_throws_its_own);
    CHECK_SIZE("exception of the handler's own",
               thrown_by([] { through(::operator new(too_much)); }), 2);
    CHECK_SIZE("calls of the handler", handler_calls, 1);
    std::set_new_handler(nullptr);
    good_block(through(::operator new(100)), 16, 100);
    ::operator delete(sink);
}

TEST(length_of_array_overflows)
{
    volatile size_t n = SIZE_MAX / 4;
    bool length_error = false;
    try {
        through(new long[n]);
    } catch (const std::bad_array_new_length &) {
        length_error = true;
    } catch (const std::bad_alloc &) {
    }
    CHECK(length_error, "new long[SIZE_MAX / 4]: expected bad_array_new_length");
}

struct alignas(256) wide {
    unsigned char bytes[700];
};

struct counted {
    static int live;
    std::string text = std::string(100, 'x');
    counted() { live++; }
    ~counted() { live--; }
};
int counted::live;

TEST(expressions)
{
    for (int i = 0; i < 1000; i++) {
        wide *one = new wide, *several = new wide[3];
        through(one);
        through(several);
        CHECK_ALIGNED(one, 256);
        CHECK_ALIGNED(several, 256);
        memset(one, 1, sizeof *one);
        memset(several, 2, 3 * sizeof *several);
        CHECK_BYTES(one, 1, sizeof *one);
        delete one;
        delete[] several;
    }
    for (int i = 0; i < 100; i++) {
        auto array = std::make_unique<counted[]>(size_t(i));
        through(array.get());
        CHECK_SIZE("live objects", counted::live, size_t(i));
    }
    CHECK_SIZE("live objects", counted::live, 0);
}

TEST(containers_in_threads)
{
    std::vector<std::thread> threads;
    std::vector<std::vector<std::string>> results(8);
    for (size_t t = 0; t < results.size(); t++)
        threads.emplace_back([t, &results] {
            for (int i = 0; i < 20000; i++)
                results[t].push_back(std::string(size_t(i % 200), char('a' + t)));
        });
    for (auto &thread : threads)
        thread.join();
    for (size_t t = 0; t < results.size(); t++)
        for (int i = 0; i < 20000; i++)
            if (results[t][size_t(i)] != std::string(size_t(i % 200), char('a' + t)))
                CHECK(false, "string %d of thread %zu changed", i, t);
}

// A thread whose first call of the allocator is delete.
TEST(first_call_of_a_thread_is_delete)
{
    for (size_t n : sizes) {
        void *p = through(::operator new(n)), *q = through(::operator new (n, align_val_t{64}));
        std::thread([=] { ::operator delete(p); }).join();
        std::thread([=] { ::operator delete (q, align_val_t{64}); }).join();
    }
}

#if !defined(API_STATIC)
TEST(operators_are_ours)
{
    if (check_any_malloc())
        return;
    for (const char *name : {"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm",
                             "_ZnwmSt11align_val_t", "_ZdlPvSt11align_val_t"}) {
        Dl_info where;
        void *address = dlsym(RTLD_DEFAULT, name);
        if (CHECK(address != nullptr && dladdr(address, &where) != 0, "%s: not found", name))
            CHECK(strstr(where.dli_fname, "libhakmem") != nullptr,
                  "%s: expected it from libhakmem, found it in %s", name, where.dli_fname);
    }
}
#endif

} // namespace

int main() { return tests_main("new_delete"); }
