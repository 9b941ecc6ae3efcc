// A program that replaces one pair of operator new and delete: every other form must call the
// replacement, as the standard says of a library's forms (trap 16).
#include "check.h"

#include <memory>
#include <new>

namespace {

using std::align_val_t;
using std::nothrow;
using std::size_t;

constexpr size_t PREFIX = 16; // before each block of ours
constexpr unsigned long MARK = 0x6f757273;
int news, deletes, aligned_news, aligned_deletes;

void *volatile sink;

void *through(void *p)
{
    sink = p;
    return sink;
}

} // namespace

// A block that libhakmem's own delete would refuse: it begins inside one of malloc.
void *operator new(size_t n)
{
    news++;
    char *p = static_cast<char *>(do_malloc(n + PREFIX));
    if (p == nullptr)
        throw std::bad_alloc();
    memcpy(p, &MARK, sizeof MARK);
    return p + PREFIX;
}

void operator delete(void *p) noexcept
{
    if (p == nullptr)
        return;
    deletes++;
    char *start = static_cast<char *>(p) - PREFIX;
    unsigned long mark;
    memcpy(&mark, start, sizeof mark);
    CHECK_SIZE("mark of a deleted block", mark, MARK);
    do_free(start);
}

void *operator new(size_t n, align_val_t align)
{
    aligned_news++;
    size_t a = size_t(align);
    char *p = static_cast<char *>(do_aligned_alloc(a, n + a));
    if (p == nullptr)
        throw std::bad_alloc();
    memcpy(p + a - sizeof MARK, &MARK, sizeof MARK);
    return p + a;
}

void operator delete(void *p, align_val_t align) noexcept
{
    aligned_deletes++;
    size_t a = size_t(align);
    unsigned long mark;
    memcpy(&mark, static_cast<char *>(p) - sizeof mark, sizeof mark);
    CHECK_SIZE("mark of a deleted block", mark, MARK);
    do_free(static_cast<char *>(p) - a);
}

namespace {

TEST(every_form_comes_to_ours)
{
    news = deletes = 0;
    void *p[8] = {
        through(::operator new(100)),          through(::operator new[](100)),
        through(::operator new(100, nothrow)), through(::operator new[](100, nothrow)),
        through(::operator new(100)),          through(::operator new[](100)),
        through(::operator new(100)),          through(::operator new[](100)),
    };
    CHECK_SIZE("calls of our new", size_t(news), 8);
    ::operator delete(p[0]);
    ::operator delete[](p[1]);
    ::operator delete(p[2], nothrow);
    ::operator delete[](p[3], nothrow);
    ::operator delete(p[4], size_t(100));
    ::operator delete[](p[5], size_t(100));
    delete static_cast<char *>(p[6]);
    delete[] static_cast<char *>(p[7]);
    CHECK_SIZE("calls of our delete", size_t(deletes), 8);
}

TEST(every_aligned_form_comes_to_ours)
{
    const align_val_t to{64};
    aligned_news = aligned_deletes = 0;
    void *p[6] = {
        through(::operator new(100, to)),          through(::operator new[](100, to)),
        through(::operator new(100, to, nothrow)), through(::operator new[](100, to, nothrow)),
        through(::operator new(100, to)),          through(::operator new[](100, to)),
    };
    CHECK_SIZE("calls of our aligned new", size_t(aligned_news), 6);
    ::operator delete(p[0], to);
    ::operator delete[](p[1], to);
    ::operator delete(p[2], to, nothrow);
    ::operator delete[](p[3], to, nothrow);
    ::operator delete(p[4], size_t(100), to);
    ::operator delete[](p[5], size_t(100), to);
    CHECK_SIZE("calls of our aligned delete", size_t(aligned_deletes), 6);
}

} // namespace

int main() { return tests_main("replaced_new"); }
