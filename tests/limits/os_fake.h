/* The OS layer for tests: the real one, over a fake kernel that can refuse calls. It is never part
 * of the library. System calls are refused, not functions of os.h, so that a function is also
 * tested after half of its work has failed. A refused call sets errno as the kernel would.
 *
 * With any settings, it ends the program if the layer unmaps, protects, moves or advises memory
 * that it has not mapped, or passes an address or a length that is not a multiple of the page. */
#ifndef HAKMEM_OS_OS_FAKE_H
#define HAKMEM_OS_OS_FAKE_H

#include "base/defs.h"

/* One line for each call that can be refused: its name and the error that it mostly fails with. */
#define FAKE_CALLS(call)                                                                \
    call(mmap, ENOMEM) call(munmap, ENOMEM) call(mremap, ENOMEM) call(mprotect, ENOMEM) \
        call(madvise, ENOMEM) call(process_madvise, EINVAL) call(prctl, EINVAL)         \
            call(getrandom, EAGAIN) call(affinity, EINVAL) call(clock_gettime, EPERM)   \
                call(pthread_create, EAGAIN)

enum fake_call {
#define FAKE_NAME(name, error) FAKE_##name,
    FAKE_CALLS(FAKE_NAME)
#undef FAKE_NAME
        FAKE_ANY, /* every call counts */
};

extern const char *const fake_names[FAKE_ANY + 1];

/* A bit for each call, for `refused`. */
#define FAKE_BIT(name) (1u << FAKE_##name)

/* Set by tests before they start threads; all zero, it is the real kernel. */
struct os_fake {
    /* The calls of `fails` numbered from `first` to `last`, from 1 on; `last` 0 means none. */
    enum fake_call fails;
    size_t first;
    size_t last;
    int error; /* 0: what that call mostly fails with */

    unsigned refused;  /* calls that always fail, as a filter makes them */
    int refused_error; /* such as EPERM or ENOSYS */

    size_t page;         /* bytes of a page, a power of two above the real one; 0: the real one */
    size_t commit_limit; /* writable bytes at most, reserved or not, as overcommit 2; 0: none */
    const char *root;    /* /proc/self/cgroup and /sys/fs/cgroup are in this folder; null: in / */
    unsigned bits;       /* no mapping at a wanted address beyond this many bits; 0: as it is */

    size_t calls[FAKE_ANY + 1]; /* made until now; atomic */
    size_t failed;              /* of them refused, for whatever reason; atomic */
    size_t mapped;              /* bytes of address space that the layer has; atomic */
    size_t committed;           /* of them writable; atomic */
    size_t untouched;           /* bytes that munmap refused and no page was in; atomic */
};

extern struct os_fake os_fake;

/* Every refused call comes through here: where a debugger stops to see who made it. */
void fake_refuses(enum fake_call call, int error);

#endif
