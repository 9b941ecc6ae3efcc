// A part in C++ of a program in C: the C++ runtime comes with it, and the library that the program
// preloads does not see it. Returns how much is wrong.
#include <cstdio>
#include <new>
#include <vector>

namespace {

volatile std::size_t too_much = std::size_t(1) << 57;
int handled, wrong;

void throw_number()
{
    handled++;
    throw 42;
}

void remove_itself()
{
    handled++;
    std::set_new_handler(nullptr);
}

void check(bool good, const char *what)
{
    if (!good)
        std::printf("%s\n", what);
    wrong += !good;
}

// The exception: 0 none, 1 bad_alloc, 2 an int.
int thrown()
{
    try {
        operator delete(operator new(too_much));
    } catch (const std::bad_alloc &) {
        return 1;
    } catch (int) {
        return 2;
    }
    return 0;
}

} // namespace

extern "C" int plugin()
{
    check(thrown() == 1, "no bad_alloc");
    check(operator new(too_much, std::nothrow) == nullptr, "a block of nothrow new");
    try {
        std::vector<long> many;
        many.reserve(too_much / 16);
        check(false, "no bad_alloc of a vector");
    } catch (const std::bad_alloc &) {
    }
    std::set_new_handler(throw_number);
    check(thrown() == 2 && handled == 1, "the handler's exception is not the program's");
    check(operator new(too_much, std::nothrow) == nullptr,
          "a block of nothrow new, with a handler");
    check(operator new[](too_much, std::align_val_t{64}, std::nothrow) == nullptr,
          "a block of aligned nothrow new, with a handler");
    handled = 0;
    std::set_new_handler(remove_itself);
    check(thrown() == 1 && handled == 1, "the handler was not called");
    return wrong;
}
