/* Calls of the allocator from inside libc and the loader, which may hold their locks and be in the
 * middle of what the allocator itself asks for: dlsym and dlopen, a first backtrace, the set-up of
 * a thread's dynamic thread-local memory. With --wrapped, behind a library that stands before
 * malloc and finds it by dlsym (wrapper.c). */
#include "trap.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>

static const char *library_path; /* of tls_library.c */
static bool has_wrapper;         /* before malloc */

/* ---- thread-local memory of a library that came later ---- */

static unsigned char *(*tls_touch)(unsigned char);
static unsigned char *(*tls_small)(void);

/* The loader takes the library's memory for this thread now, as the thread's first call. */
static void *touch_first(void *number)
{
    unsigned char value = (unsigned char)((uintptr_t)number + 1);
    unsigned char *memory = tls_touch(value);
    CHECK_BYTES(memory, value, 100000);
    CHECK(*tls_small() == 17, "initialised thread-local variable: expected 17, found %d",
          *tls_small());
    use_the_heap(value);
    CHECK_BYTES(memory, value, 100000);
    return NULL;
}

static void open_library(void **library)
{
    *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL)
        fail("reenter: dlopen: %s", dlerror());
    tls_touch = (unsigned char *(*)(unsigned char))dlsym(*library, "tls_touch");
    tls_small = (unsigned char *(*)(void))dlsym(*library, "tls_small");
}

TEST(thread_local_memory_made_late)
{
    void *library;
    for (int round = 0; round < 5; round++) {
        open_library(&library);
        in_threads(8, touch_first);
        touch_first((void *)9);
        dlclose(library);
    }
}

/* ---- the loader ---- */

static volatile bool stop;

static void *open_and_close(void *unused)
{
    while (!stop) {
        void *library = dlopen(library_path, RTLD_LAZY);
        CHECK(dlsym(library, "tls_touch") != NULL, "dlsym: a name was not found");
        CHECK(dlsym(library, "no_such_name") == NULL, "dlsym: expected NULL");
        CHECK(dlerror() != NULL, "dlerror: expected a message");
        dlclose(library);
    }
    return unused;
}

static void *short_thread(void *unused)
{
    do_free(do_malloc(5000));
    return unused;
}

/* Threads begin and end meanwhile: the loader and libc's threads share locks. */
TEST(loader_beside_threads)
{
    pthread_t openers[2];
    stop = false;
    threads_start(openers, 2, open_and_close);
    for (int i = 0; i < 500; i++) {
        in_thread(short_thread, NULL);
        use_the_heap(2);
    }
    stop = true;
    threads_join(openers, 2);
}

TEST(fork_some)
{
    for (int i = 0; i < 20; i++)
        in_child(thread_local_memory_made_late);
}

static void *names_not_found(void *unused)
{
    CHECK(dlsym(RTLD_DEFAULT, "no_such_name") == NULL, "dlsym: expected NULL");
    CHECK(dlsym(RTLD_NEXT, "no_such_name_either") == NULL, "dlsym: expected NULL");
    CHECK(dlerror() != NULL, "dlerror: expected a message");
    return unused;
}

/* The message is the thread's first block. */
TEST(errors_of_the_loader)
{
    for (int i = 0; i < 50; i++)
        in_thread(names_not_found, NULL);
}

/* ---- backtrace ---- */

static int frames;

static void trace(int number)
{
    (void)number;
    void *places[32];
    frames = backtrace(places, 32);
}

static void *trace_in_handler(void *unused)
{
    pthread_kill(pthread_self(), SIGUSR1);
    return unused;
}

/* Its first call loads a library. */
TEST_AT(1, first_backtrace, false)
{
    struct sigaction action = {.sa_handler = trace};
    sigaction(SIGUSR1, &action, NULL);
    in_thread(trace_in_handler, NULL);
    CHECK(frames > 1, "frames of a backtrace: expected several, found %d", frames);
    char **symbols = backtrace_symbols((void *[]){(void *)first_backtrace}, 1);
    CHECK(symbols != NULL, "backtrace_symbols gave NULL");
    do_free(symbols);
}

/* ---- behind a wrapper ---- */

TEST_AT(0, behind_a_wrapper, false)
{
    if (!has_wrapper)
        return;
    const char *(*wrapped)(void) =
        (const char *(*)(void))dlsym(RTLD_DEFAULT, "wrapper_stands_before");
    unsigned long (*calls)(void) = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, "wrapper_calls");
    if (wrapped == NULL || calls == NULL)
        fail("reenter: --wrapped: the wrapper is not preloaded");
    unsigned long before = calls();
    use_the_heap(1);
    CHECK(calls() - before >= 40, "calls of the wrapper's malloc: expected 40 or more, found %lu",
          calls() - before);
    CHECK(strstr(wrapped(), "libhakmem") != NULL,
          "behind the wrapper: expected libhakmem, found %s", wrapped());
}

int main(int argc, char **argv)
{
    if (argc < 2)
        fail("usage: reenter LIBRARY [--wrapped]");
    library_path = argv[1];
    has_wrapper = argc > 2;
    return tests_main("reenter");
}
