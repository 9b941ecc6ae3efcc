/* A service in C++: each thread keeps a table of texts and replaces entries for ever. Says "ready"
 * once the tables are full, and what mallinfo2 counts as used for each line on standard input. */
#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned threads = 8;
constexpr unsigned entries = 20000;

std::uint64_t next(std::uint64_t &state)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

void fill(std::map<std::uint64_t, std::vector<std::string>> &table, std::uint64_t &state)
{
    auto &texts = table[next(state) % entries];
    texts.clear();
    for (std::uint64_t n = next(state) % 4; n > 0; n--)
        texts.emplace_back(next(state) % 400, 'x');
}

void work(unsigned number, bool forever)
{
    static std::map<std::uint64_t, std::vector<std::string>> tables[threads];
    std::uint64_t state = number;
    for (unsigned i = 0; forever || i < entries; i++)
        fill(tables[number], state);
}

void work_together(bool forever)
{
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; i++)
        all.emplace_back(work, i, forever);
    for (auto &thread : all)
        if (forever)
            thread.detach();
        else
            thread.join();
}

} // namespace

int main(int count, char **)
{
    work_together(false);
    if (count > 1)
        work_together(true);
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        struct mallinfo2 info = mallinfo2();
        std::cout << info.uordblks + info.hblkhd << std::endl;
    }
    std::_Exit(0); // threads still use the tables
}
