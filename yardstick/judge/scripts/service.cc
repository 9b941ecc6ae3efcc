// A service whose life the judge looks at: commands arrive on a socket file. service SIZE
//
// Sixteen threads, each with sessions of its own: a map of strings, vectors and shared texts, of
// which some are freed by the next thread.
#include <barrier>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t THREADS = 16;

struct Session {
    std::string user;
    std::vector<std::string> path;
    std::map<int, std::string> fields;
    std::shared_ptr<std::string> page;
};

struct Part {
    std::mt19937 lot;
    std::unordered_map<size_t, std::unique_ptr<Session>> sessions;
    std::vector<std::shared_ptr<std::string>> from_the_one_before;
};

std::vector<Part> parts(THREADS);
std::barrier<> begin(THREADS + 1), done(THREADS + 1);
char step;
size_t sessions_of_each;

std::unique_ptr<Session> session(Part &part)
{
    auto made = std::make_unique<Session>();
    made->user.assign(10 + part.lot() % 60, 'u');
    for (unsigned i = part.lot() % 6; i > 0; i--)
        made->path.emplace_back(5 + part.lot() % 90, 'p');
    for (unsigned i = part.lot() % 4; i > 0; i--)
        made->fields.emplace(static_cast<int>(i), std::string(part.lot() % 300, 'f'));
    made->page = std::make_shared<std::string>(200 + part.lot() % 4000, 'g');
    return made;
}

void take(size_t at)
{
    Part &part = parts[at];
    if (step == 'l') // load
        for (size_t i = 0; i < sessions_of_each; i++) {
            part.sessions[i] = session(part);
            if (i % 3 == 0)
                part.from_the_one_before.push_back(part.sessions[i]->page);
        }
    if (step == 'f') { // free
        part.sessions.clear();
        parts[(at + 1) % THREADS].from_the_one_before.clear();
    }
    if (step == 'i' && at < 2) // light
        for (int i = 0; i < 300; i++)
            session(part);
}

void tell(const char *word)
{
    step = !std::strncmp(word, "light", 5) ? 'i' : word[0];
    begin.arrive_and_wait();
    done.arrive_and_wait();
}

} // namespace

int main(int count, char **words)
{
    if (count < 2)
        return 0; // the loader has bound all
    sessions_of_each = static_cast<size_t>(std::atol(words[1])) / THREADS;
    std::signal(SIGTERM, [](int) { _exit(0); });
    for (size_t at = 0; at < THREADS; at++)
        std::thread([at] {
            for (;;) {
                begin.arrive_and_wait();
                take(at);
                done.arrive_and_wait();
            }
        }).detach();
    int door = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, "socket");
    if (bind(door, reinterpret_cast<sockaddr *>(&address), sizeof(address)) || listen(door, 8))
        return 1;
    std::ofstream("pid") << getpid() << "\n";
    for (;;) {
        int client = accept(door, nullptr, nullptr);
        char word[64] = {};
        if (client >= 0 && read(client, word, sizeof(word) - 1) > 0) {
            if (std::strchr("lf", word[0]))
                tell(word);
            if (write(client, "done\n", 5) != 5)
                return 1;
        }
        close(client);
    }
}
