/* The lock of one word (os/lock.h, lock.c): README.md. */
#define THREADS 3
#ifndef ROUNDS
#define ROUNDS 2
#endif

byte state; /* 0 free, 1 held, 2 held, and a thread may sleep */
byte inside;
byte asleep; /* threads that the kernel has on the word, a set */

proctype thread(byte me)
{
    byte round, got;
    do
    :: round < ROUNDS ->
        /* lock_take */
        atomic {
            got = state;
            if
            :: state == 0 -> state = 1
            :: else
            fi
        };
        if
        :: got != 0 ->
            /* lock_wait */
            if
            :: atomic { /* spins with luck */
                state == 0;
                state = 1;
                got = 0
            }
            :: true
            fi;
            do
            :: got != 0 ->
#ifdef BREAK_FORGET_SLEEPERS
                atomic {
                    got = state;
                    state = (state == 0 -> 1 : 2)
                };
#else
                atomic {
                    got = state;
                    state = 2
                };
#endif
                if
                :: got != 0 ->
                    /* The kernel compares and puts to sleep in one step. */
                    atomic {
                        if
                        :: state == 2 -> asleep = asleep | (1 << me)
                        :: else
                        fi
                    };
                    !(asleep & (1 << me))
                :: else
                fi
            :: else -> break
            od
        :: else
        fi;
        inside++;
        assert(inside == 1);
        inside--;
        /* lock_release */
#ifdef BREAK_NO_EXCHANGE
        got = state;
        state = 0;
#else
        atomic {
            got = state;
            state = 0
        };
#endif
        if
        :: got == 2 ->
            atomic {
                if
                :: asleep & 1 -> asleep = asleep & ~1
                :: asleep & 2 -> asleep = asleep & ~2
                :: asleep & 4 -> asleep = asleep & ~4
                :: asleep == 0
                fi
            }
        :: else
        fi;
        atomic {
            got = 0;
            round++
        }
    :: else -> break
    od
}

init
{
    atomic {
        run thread(0);
        run thread(1);
        run thread(2)
    }
}
