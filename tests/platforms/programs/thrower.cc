// As little as a C++ program can be: nothing but new brings the C++ runtime's throw along.
#include <cstdint>
#include <new>

int main()
{
    volatile std::size_t too_much = SIZE_MAX / 4;
    try {
        void *volatile p = ::operator new(too_much);
        ::operator delete(p);
    } catch (const std::bad_alloc &) {
        return 0;
    }
    return 2;
}
