/* What the nothrow forms of new need exceptions for: the one file that is compiled with them.
 *
 * Catching takes the C++ runtime, and a C program that preloads the library has none. So the
 * functions with which compilers catch are weak here, and null then. Frames whose personality is
 * null let every exception pass; but without a runtime nobody throws.
 *
 * The loader looks for these names once, when it loads the library. They stay null in a program in
 * C that loads a part in C++ later, even if that part has a runtime. handler_returned therefore
 * calls no handler there, as it could not catch what that throws.
 *
 * Nothing here has a destructor or says noexcept: those would need more of the runtime. */
#include "api/cxx.h"

extern "C" [[IF_THERE]] void *__cxa_begin_catch(void *) noexcept;

#ifndef HAKMEM_ARCHIVE
__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch");
#endif

void *null_if_thrown(plain_new form, std::size_t n)
{
    try {
        return form(n);
    } catch (...) {
        return nullptr;
    }
}

void *null_if_thrown(aligned_new form, std::size_t n, std::align_val_t align)
{
    try {
        return form(n, align);
    } catch (...) {
        return nullptr;
    }
}

bool handler_returned()
{
    if (!IS_THERE(__cxa_begin_catch) || !IS_THERE(std::get_new_handler))
        return false;
    std::new_handler handler = std::get_new_handler();
    if (handler == nullptr)
        return false;
    try {
        handler();
    } catch (...) {
        return false;
    }
    return true;
}
