// Functions whose names have up to 100,000 letters, as templates of templates make them.
namespace plant {

template <typename A, typename B>
struct Pair {
};

template <int depth, typename T>
struct Grows {
    __attribute__((noinline)) static char *keep()
    {
        static_cast<void>(new char[64 * 1024]);
        char *p = Grows<depth - 1, Pair<T, T>>::keep();
        return p + 1;
    }
};

template <typename T>
struct Grows<0, T> {
    __attribute__((noinline)) static char *keep() { return new char[64 * 1024]; }
};

} // namespace plant

int main()
{
    for (int i = 0; i < 100; i++)
        plant::Grows<12, long>::keep();
    return 0;
}
