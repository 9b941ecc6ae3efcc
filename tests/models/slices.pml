/* Free slices of a superslab go back to the kernel while others are taken and given: README.md. */
#define SLICES 3
#define ALL 7

bit lock;     /* superslabs */
byte free;    /* a set; lock: superslabs */
byte touched; /* may hold pages, a set; same lock */
byte retained; /* free and touched ones; same lock */
bit unmapped; /* the superslab is no more; same lock */
byte dirty;   /* slices that do not read as zero, a set */

/* These must be found by what the program reads. */
#if defined(BREAK_BITS_STAY) || defined(BREAK_BITS_EARLY)
#define BOOKS(x) skip
#else
#define BOOKS(x) assert(x)
#endif

#define COUNT(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1))

inline take_lock()
{
    atomic {
        !lock;
        lock = 1
    }
}

inline unlock()
{
    BOOKS(retained == COUNT(free & touched));
    lock = 0
}

/* The bits that slices_mark_taken changes. */
inline mark_taken(mask)
{
    retained = retained - COUNT(touched & (mask));
    free = free & ~(mask);
    touched = touched | (mask)
}

proctype user(byte mark)
{
    byte mask;
    bit zero;
end:
    do
    :: take_lock();
        d_step {
            if
            :: unmapped -> /* another superslab */
                unmapped = 0;
                free = ALL;
                touched = 0;
                dirty = 0
            :: else
            fi;
            if
            :: (free & 3) == 3 && mark == 1 -> mask = 3
            :: (free & 1) && mark == 2 -> mask = 1
            :: (free & 2) && mark == 2 -> mask = 2
            :: (free & 4) -> mask = 4
            :: else -> mask = 0
            fi;
            if
            :: mask != 0 ->
                zero = (touched & mask) == 0;
                mark_taken(mask)
            :: else
            fi;
            unlock()
        };
        if
        :: mask != 0 ->
            assert(!unmapped);
            assert(!zero || !(dirty & mask)); /* calloc hands it out as it is */
            dirty = dirty | mask;
            d_step {
                assert((dirty & mask) == mask); /* what the program wrote is there */
                zero = 0
            };
            take_lock();
            d_step {
                free = free | mask;
                retained = retained + COUNT(mask);
                mask = 0;
                unlock()
            }
        :: else
        fi
    od
}

proctype purger()
{
    byte mask;
    bit done;
end:
    do
    :: take_lock();
        d_step {
            mask = 0;
            if
            :: !unmapped -> mask = free & touched
            :: else
            fi;
#ifndef BREAK_BITS_STAY
            mark_taken(mask);
#endif
            unlock()
        };
        if
        :: mask != 0 ->
#ifdef REACH_PURGE
            assert(false);
#endif
#ifdef BREAK_BITS_EARLY
            take_lock();
            d_step {
                free = free | mask;
                touched = touched & ~mask;
                unlock()
            };
#endif
            if
            :: atomic {
                BOOKS(!unmapped);
                dirty = dirty & ~mask;
                done = 1
            }
            :: done = 0 /* the kernel refused */
            fi;
            take_lock();
            d_step {
#ifndef BREAK_BITS_EARLY
                free = free | mask;
#ifdef BREAK_REFUSED
                touched = touched & ~mask;
#else
                if
                :: done -> touched = touched & ~mask
                :: else -> retained = retained + COUNT(mask)
                fi;
#endif
#endif
#ifdef BREAK_BITS_STAY
                retained = COUNT(free & touched);
#endif
                mask = 0;
                done = 0;
                unlock()
            }
        :: else -> /* the rest of the purge: an empty superslab goes back whole */
            take_lock();
            d_step {
                if
                :: free == ALL && !unmapped ->
                    unmapped = 1;
                    retained = 0;
                    touched = 0
                :: else
                fi;
                unlock()
            }
        fi
    od
}

/* Trims too, under the lock. */
proctype trimmer()
{
end:
    do
    :: take_lock();
        d_step {
            if
            :: free == ALL && !unmapped ->
                unmapped = 1;
                retained = 0;
                touched = 0
            :: else
            fi;
            unlock()
        }
    od
}

init
{
    atomic {
        free = ALL;
        run user(1);
        run user(2);
        run purger();
        run trimmer()
    }
}
