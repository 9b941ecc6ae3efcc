// Containers, threads, aligned objects and a new that fails: a C++ program whose malloc and new
// must be hakmem's.
#include <map>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "proof.h"

namespace {

struct alignas(128) Wide {
    char bytes[128];
};

void *with_new(size_t n) { return ::operator new(n); }
void with_delete(void *p) { ::operator delete(p); }

bool counts_words()
{
    std::map<std::string, std::vector<int>> places;
    for (int i = 0; i < 20000; i++)
        places["a word of some length, number " + std::to_string(i % 997)].push_back(i);
    size_t sum =
        std::accumulate(places.begin(), places.end(), size_t{0},
                        [](size_t n, const auto &place) { return n + place.second.size(); });
    return places.size() == 997 && sum == 20000;
}

bool fails_by_throwing()
{
    try {
        volatile size_t too_much = static_cast<size_t>(1) << 62;
        ::operator delete(::operator new(too_much));
    } catch (const std::bad_alloc &) {
        return ::operator new(static_cast<size_t>(1) << 62, std::nothrow) == nullptr;
    }
    return false;
}

} // namespace

int main()
{
    bool fine[4] = {};
    std::vector<std::thread> threads;
    for (bool &one : fine)
        threads.emplace_back([&one] { one = counts_words(); });
    for (std::thread &thread : threads)
        thread.join();
    for (bool one : fine)
        if (!one)
            return 2;
    std::vector<Wide> wide(100);
    if (reinterpret_cast<size_t>(&wide[3]) % alignof(Wide) != 0)
        return 3;
    if (!fails_by_throwing())
        return 4;
    return expect("malloc", counted_of(malloc, free), FOUR_MIB, 2 * FOUR_MIB) ||
           expect("new", counted_of(with_new, with_delete), FOUR_MIB, 2 * FOUR_MIB);
}
