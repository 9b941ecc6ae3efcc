// Loses and keeps blocks, as C++ does.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace {

struct Left {
    virtual ~Left() = default;
    int a = 1;
};
struct Right {
    virtual ~Right() = default;
    int b = 2;
};
struct Both : Left, Right {
    std::string text = std::string(100, 'x');
};

Both *volatile lost;
std::string *volatile array;
Right *volatile base;
std::map<int, std::string> *volatile tree;
std::unique_ptr<std::vector<std::string>> owned;

// A string of 100 letters has a block of its own: that is lost through the object.
NOINLINE void lost_object() { lost = new Both; }

// new[] notes the number of objects before the first one.
NOINLINE void kept_array() { array = new std::string[3]{std::string(50, 'a'), "b", "c"}; }

// A pointer to a base is one into the object.
NOINLINE void kept_base() { base = new Both; }

NOINLINE void kept_tree()
{
    tree = new std::map<int, std::string>;
    for (int i = 0; i < 100; i++)
        (*tree)[i] = std::string(40, 'y');
}

NOINLINE void kept_owned()
{
    owned = std::make_unique<std::vector<std::string>>(10, std::string(60, 'z'));
}

NOINLINE void wipe()
{
    volatile char junk[16384];
    std::memset(const_cast<char *>(junk), 0, sizeof junk);
}

} // namespace

int main()
{
    lost_object();
    kept_array();
    kept_base();
    kept_tree();
    kept_owned();
    lost = nullptr;
    wipe();
    std::_Exit(0); // so that destructors of globals free nothing
}
