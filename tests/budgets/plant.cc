// A program that uses what its arguments say, in functions of known names and lines.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#define APART __attribute__((noinline))

static void *volatile last;

// 30 MiB at once.
APART static void hoard()
{
    std::vector<std::unique_ptr<std::string>> all;
    for (int i = 0; i < 30; i++)
        all.push_back(std::make_unique<std::string>(1 << 20, 'x'));
    last = all.back().get();
}

APART static void forget()
{
    last = new char[1000];
    last = nullptr;
}

APART static void churn()
{
    for (int i = 0; i < 5000; i++) {
        last = malloc(10);
        free(last);
    }
}

// 80,000 blocks, by four threads, while the first one forks.
static void storm()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            for (int k = 0; k < 20000; k++)
                free(malloc(100 + k % 500));
        });
    for (int i = 0; i < 10; i++)
        if (fork() == 0)
            _exit(0);
    for (auto &thread : threads)
        thread.join();
    while (wait(nullptr) > 0)
        ;
}

// What follows is done by a child.
static int forked(int count, char **words);

static int obey(int count, char **words)
{
    for (int i = 0; i < count; i++) {
        const std::string word = words[i];
        if (word == "hoard")
            hoard();
        else if (word == "forget")
            forget();
        else if (word == "churn")
            churn();
        else if (word == "storm")
            storm();
        else if (word == "abort")
            abort();
        else if (word == "kill")
            raise(SIGKILL);
        else if (word == "fork")
            return forked(count - i - 1, words + i + 1);
        else
            return atoi(words[i]);
    }
    return 0;
}

static int forked(int count, char **words)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(obey(count, words));
    return waitpid(child, nullptr, 0) == child ? 0 : 1;
}

int main(int count, char **words) { return obey(count - 1, words + 1); }
