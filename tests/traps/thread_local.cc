/* Destructors of C++: of objects with the life of a thread, which allocate, free and make further
 * ones, and of static objects, at the end of the program (traps 30, 34). */
extern "C" {
#include "../api/check.h"
}

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<unsigned> destroyed;

/* Each is made in the destructor of the one before. */
template <int depth>
struct Late {
    std::vector<std::string> lines{200, std::string(100 + depth, 'x')};
    void *block = do_malloc(3000 * (depth + 1));

    ~Late();
    void touch() { lines.emplace_back("more"); }
};

template <int depth>
Late<depth> &late()
{
    static thread_local Late<depth> object;
    return object;
}

template <int depth>
Late<depth>::~Late()
{
    for (size_t i = 0; i < 200; i++)
        if (!CHECK(lines[i].size() == 100 + depth && lines[i][99] == 'x', "line %zu changed", i))
            break;
    do_free(block);
    std::map<int, std::string> other;
    for (int i = 0; i < 100; i++)
        other[i] = std::to_string(i) + " and something longer than fits in place";
    if constexpr (depth < 5)
        late<depth + 1>().touch();
    destroyed++;
}

TEST(thread_local_objects_allocate_when_they_go)
{
    enum { THREADS = 100, AT_A_TIME = 4 };
    for (int i = 0; i < THREADS; i += AT_A_TIME) {
        std::vector<std::thread> threads;
        for (int k = 0; k < AT_A_TIME; k++)
            threads.emplace_back([] { late<0>().touch(); });
        for (auto &thread : threads)
            thread.join();
    }
    CHECK_SIZE("objects destroyed", destroyed, THREADS * 6);
}

/* Made in one thread, destroyed in another after the first is gone. */
TEST(objects_handed_over)
{
    for (int i = 0; i < 50; i++) {
        std::unique_ptr<Late<5>> object;
        std::thread([&] { object = std::make_unique<Late<5>>(); }).join();
        std::thread([&] { object.reset(); }).join();
    }
}

/* Its destructor runs after main, and after those of everything that main made. */
static struct AtTheEnd {
    std::vector<std::string> kept;
    ~AtTheEnd()
    {
        late<6>().touch(); /* those below are gone with the main thread */
        kept.resize(1000, std::string(50, 'y'));
        if (!check_all_passed())
            _exit(1);
    }
} at_the_end;

int main()
{
    check_start("thread_local");
    at_the_end.kept.assign(500, std::string(70, 'z'));
    tests_run();
    late<0>().touch(); /* the main thread's objects go before the static ones */
    return check_end();
}
