// A C++ program that lives of new and of exceptions, linked in every way.
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct alignas(128) Wide {
    char bytes[256];
};

int handled;

void handler()
{
    if (++handled == 3)
        std::set_new_handler(nullptr);
}

void work()
{
    std::map<int, std::string> names;
    for (int i = 0; i < 2000; i++)
        names[i] = std::string(static_cast<size_t>(i), 'x');
    for (int i = 0; i < 2000; i += 2)
        names.erase(i);
    std::vector<std::unique_ptr<Wide>> wide;
    for (int i = 0; i < 100; i++) {
        wide.push_back(std::make_unique<Wide>());
        if (reinterpret_cast<uintptr_t>(wide.back().get()) % 128 != 0)
            throw std::runtime_error("alignment");
    }
    try {
        throw std::logic_error(names.at(1999));
    } catch (const std::logic_error &error) {
        if (std::string(error.what()).size() != 1999)
            throw std::runtime_error("content");
    }
}

} // namespace

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(work);
    for (std::thread &thread : threads)
        thread.join();
    volatile size_t too_much = SIZE_MAX / 4;
    std::set_new_handler(handler);
    try {
        void *volatile p = ::operator new(too_much);
        ::operator delete(p);
    } catch (const std::bad_alloc &) {
        void *volatile none = ::operator new(too_much, std::nothrow);
        std::printf("bad_alloc after %d calls of the handler, then %s\n", handled,
                    none == nullptr ? "null" : "a block");
        return handled == 3 && none == nullptr ? 0 : 1;
    }
    return 2;
}
