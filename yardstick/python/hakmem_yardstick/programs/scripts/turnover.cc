// A service that holds small records, most of which go: commands arrive on a socket file.
//
//     turnover RECORDS
//
// fill      makes the records: a key and a value, in a std::unordered_map of std::string
// delete    deletes four in five, at random
// turn      replaces a random one of the rest, three times as often as there are records left
// digest    says how many records there are, and a sum over their contents
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

class Table {
  public:
    explicit Table(uint32_t count)
    {
        for (uint32_t number = 0; number < count; number++)
            live.push_back(number);
    }

    void fill()
    {
        for (uint32_t number : live)
            records.emplace(key(number), value());
    }

    void remove()
    {
        for (size_t last = live.size() - 1; last > 0; last--)
            std::swap(live[last], live[below(last + 1)]);
        size_t stay = live.size() / 5;
        for (size_t i = stay; i < live.size(); i++)
            records.erase(key(live[i]));
        live.resize(stay);
    }

    void turn()
    {
        for (size_t left = 3 * live.size(); left > 0; left--) {
            std::string name = key(live[below(live.size())]);
            records.erase(name);
            records.emplace(std::move(name), value());
        }
    }

    // An FNV-1a hash.
    std::string digest() const
    {
        uint64_t found = 14695981039346656037U;
        for (uint32_t number : live)
            for (unsigned char byte : records.at(key(number)))
                found = (found ^ byte) * 1099511628211U;
        return std::to_string(records.size()) + " " + std::to_string(found);
    }

  private:
    static std::string key(uint32_t number)
    {
        char text[32];
        snprintf(text, sizeof(text), "record:%012u", number);
        return text;
    }

    size_t below(size_t limit) { return rng() % limit; }

    std::string value()
    {
        std::string number = std::to_string(++made) + " ";
        std::string text;
        size_t size = 120 + below(120);
        text.reserve(size);
        while (text.size() + number.size() <= size)
            text += number;
        return text;
    }

    std::mt19937_64 rng{11};
    std::unordered_map<std::string, std::string> records;
    std::vector<uint32_t> live;
    uint64_t made = 0;
};

std::string answer(Table &table, const std::string &word)
{
    if (word == "digest")
        return table.digest();
    if (word == "fill")
        table.fill();
    else if (word == "delete")
        table.remove();
    else if (word == "turn")
        table.turn();
    else if (word != "ready")
        return "";
    return "done";
}

} // namespace

int main(int count, char **words)
{
    if (count < 2)
        return 0; // the loader has bound all
    Table table(static_cast<uint32_t>(std::atol(words[1])));
    std::signal(SIGTERM, [](int) { _exit(0); });
    int door = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, "socket");
    if (bind(door, reinterpret_cast<sockaddr *>(&address), sizeof(address)) || listen(door, 8)) {
        std::perror("socket");
        return 1;
    }
    std::ofstream("pid") << getpid() << "\n";
    for (;;) {
        int client = accept(door, nullptr, nullptr);
        char word[64];
        ssize_t size = client < 0 ? -1 : read(client, word, sizeof(word));
        if (size >= 0) {
            std::string said = answer(table, std::string(word, static_cast<size_t>(size))) + "\n";
            if (write(client, said.data(), said.size()) < 0)
                std::perror("socket");
        }
        close(client);
    }
}
