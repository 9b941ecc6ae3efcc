// As plant.c, through operator new and a container.
#include <cstddef>
#include <vector>

namespace plant {

struct Record {
    char bytes[1024];
};

template <typename T>
class Keeper {
  public:
    __attribute__((noinline)) void keep()
    {
        records.push_back(new T); // here: keep
    }

  private:
    std::vector<T *> records;
};

} // namespace plant

int main()
{
    static plant::Keeper<plant::Record> keeper;
    for (int i = 0; i < 256 * 1024; i++)
        keeper.keep(); // here: main
    return 0;
}
