// Nothing but a new that fails: in a static program what throws has to be asked for.
#include <new>

int main()
{
    try {
        volatile unsigned long too_much = 1UL << 62;
        ::operator delete(::operator new(too_much));
    } catch (const std::bad_alloc &) {
        return 0;
    }
    return 1;
}
