/* The library taken in by dlopen, beside the malloc of glibc, which the program and the library's
 * own threads go on using: `dlopen CASE LIBRARY [TLS]` runs one case in a process of its own.
 * TLS is a small library with thread-local memory of its own, as many of which as fit fill what the
 * loader has set aside for libraries that come late (trap 32). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 100

static const char *library;
static const char *tls_library;
static size_t largest = 3000000; /* bytes of a block */
static void *(*take)(size_t);
static void (*give)(void *);
static size_t (*usable)(const void *);

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    if (found == NULL)
        fail("dlsym(%s): expected the function, found: %s", name, dlerror());
    return found;
}

static void find(void *handle)
{
    if (handle == NULL)
        fail("dlopen: expected a handle, found: %s", dlerror());
    take = symbol(handle, "hakmem_malloc");
    give = symbol(handle, "hakmem_free");
    usable = symbol(handle, "hakmem_malloc_usable_size");
}

static void load(int flags) { find(dlopen(library, flags)); }

/* Blocks of all kinds, with content, and blocks of the other malloc between them. */
static void use(unsigned number)
{
    enum { N = 80 };
    unsigned char *ours[N], *theirs[N];
    size_t sizes[N], n = number % 7;
    for (unsigned i = 0; i < N; i++) {
        sizes[i] = n;
        ours[i] = take(n);
        theirs[i] = malloc(n + 1);
        if (ours[i] == NULL || theirs[i] == NULL || usable(ours[i]) < n)
            fail("expected two blocks of %zu bytes, found %p and %p", n, (void *)ours[i],
                 (void *)theirs[i]);
        memset(ours[i], (int)(number + i), n);
        memset(theirs[i], (int)~(number + i), n + 1);
        n = n < largest ? n + n / 4 + 5 : 0;
    }
    for (unsigned i = 0; i < N; i++) {
        unsigned char mark = (unsigned char)(number + i);
        for (size_t at = 0; at < sizes[i]; at += 61)
            if (ours[i][at] != mark || theirs[i][at] != (unsigned char)~mark)
                fail("byte %zu of %zu: expected %02x and %02x, found %02x and %02x", at, sizes[i],
                     mark, (unsigned char)~mark, ours[i][at], theirs[i][at]);
        give(ours[i]);
        free(theirs[i]);
    }
}

/* The program's malloc must have stayed what it was. */
static void expect_malloc_of_libc(void)
{
    Dl_info where;
    if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &where) == 0 ||
        strstr(where.dli_fname, "libc.so") == NULL)
        fail("malloc of the program: expected libc's, found %s", where.dli_fname);
}

static void now(void)
{
    load(RTLD_NOW);
    expect_malloc_of_libc();
    use(1);
}

static void deepbind(void)
{
    load(RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    expect_malloc_of_libc();
    use(1);
}

static void global(void)
{
    load(RTLD_NOW | RTLD_GLOBAL);
    expect_malloc_of_libc();
    use(1);
}

static void twice(void)
{
    void *first = dlopen(library, RTLD_NOW), *second = dlopen(library, RTLD_NOW);
    find(first);
    if (first != second)
        fail("a second dlopen: expected the first's handle %p, found %p", first, second);
    use(1);
}

/* Never unloaded: blocks, threads' ends and handlers of fork need it. */
static void closed(void)
{
    void *handle = dlopen(library, RTLD_NOW);
    find(handle);
    void *kept = take(100);
    if (dlclose(handle) != 0 || dlclose(dlopen(library, RTLD_NOW)) != 0)
        fail("dlclose: %s", dlerror());
    give(kept);
    use(1);
}

static pthread_barrier_t loaded;

static void *wait_and_use(void *number)
{
    pthread_barrier_wait(&loaded);
    pthread_barrier_wait(&loaded);
    use((unsigned)(uintptr_t)number);
    return NULL;
}

static void *load_in_thread(void *unused)
{
    load(RTLD_NOW);
    return unused;
}

/* Threads that were there before get their thread-local part too, and all make the process's first
 * call at once. */
static void threads(void)
{
    pthread_t others[THREADS], loader;
    largest = 40000;
    pthread_barrier_init(&loaded, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&others[i], NULL, wait_and_use, (void *)i) != 0)
            fail("pthread_create failed");
    pthread_barrier_wait(&loaded);
    pthread_create(&loader, NULL, load_in_thread, NULL);
    pthread_join(loader, NULL);
    pthread_barrier_wait(&loaded);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(others[i], NULL);
    use(1);
}

static void forked(void)
{
    load(RTLD_NOW);
    use(1);
    void *inherited = take(1000);
    for (unsigned i = 0; i < 20; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            give(inherited);
            use(i);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (status != 0)
            fail("child %u: expected status 0, found %#x", i, (unsigned)status);
    }
    give(inherited);
}

/* A second copy of everything, libc too. */
static void other_namespace(void)
{
    load(RTLD_NOW);
    void *block = take(100);
    void *(*first)(size_t) = take;
    find(dlmopen(LM_ID_NEWLM, library, RTLD_NOW));
    if (take == first)
        fail("dlmopen: expected a second copy, found the first");
    use(1);
    void *other = take(100);
    if (other == block)
        fail("expected blocks of two copies apart, found both at %p", block);
    give(other);
}

/* Takes in copies of the small library until one is refused or `most` are in; how many. */
static unsigned fill_tls(unsigned most)
{
    static char bytes[1 << 16];
    FILE *source = fopen(tls_library, "rb");
    size_t length = source == NULL ? 0 : fread(bytes, 1, sizeof bytes, source);
    if (length == 0 || length == sizeof bytes)
        fail("%s: expected a small file", tls_library);
    fclose(source);
    for (unsigned count = 0; count < most; count++) {
        char name[] = "/tmp/hakmem-tls-XXXXXX";
        int file = mkstemp(name);
        if (file < 0 || write(file, bytes, length) != (ssize_t)length)
            fail("a copy of %s could not be written", tls_library);
        close(file);
        void *handle = dlopen(name, RTLD_NOW);
        unlink(name);
        if (handle == NULL)
            return count;
    }
    return most;
}

static unsigned until_full(void)
{
    int ends[2];
    unsigned count = 0;
    if (pipe(ends) != 0)
        fail("pipe failed");
    if (fork() == 0) {
        count = fill_tls(1000);
        _exit(write(ends[1], &count, sizeof count) != sizeof count);
    }
    if (read(ends[0], &count, sizeof count) != sizeof count)
        fail("the child that counts did not end well");
    wait(NULL);
    return count;
}

static void tls_nearly_full(void)
{
    unsigned most = until_full();
    if (most == 0 || most == 1000)
        fail("libraries until one is refused: expected some, found %u", most);
    fill_tls(most - 1);
    load(RTLD_NOW);
    use(1);
    printf("after %u of %u small libraries\n", most - 1, most);
}

/* Where there is no room for one of 16 bytes, dlopen may refuse the library, by its own words. */
static void tls_full(void)
{
    unsigned count = fill_tls(1000);
    void *handle = dlopen(library, RTLD_NOW);
    const char *error = handle == NULL ? dlerror() : NULL;
    if (handle != NULL) {
        find(handle);
        use(1);
    } else if (strstr(error, "static TLS") == NULL) {
        fail("dlopen: expected a word about static TLS, found: %s", error);
    }
    printf("after %u small libraries: %s\n", count, handle != NULL ? "taken in" : error);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"now", now},
    {"deepbind", deepbind},
    {"global", global},
    {"twice", twice},
    {"closed", closed},
    {"threads", threads},
    {"forked", forked},
    {"other_namespace", other_namespace},
    {"tls_nearly_full", tls_nearly_full},
    {"tls_full", tls_full},
};

int main(int argc, char **argv)
{
    if (argc < 3)
        fail("dlopen CASE LIBRARY [TLS]");
    library = argv[2];
    tls_library = argc > 3 ? argv[3] : "";
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            printf("%s: good\n", argv[1]);
            return 0;
        }
    fail("no case is called %s", argv[1]);
}
