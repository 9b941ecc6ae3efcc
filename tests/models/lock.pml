/* The lock of one word (os/lock.h, lock.c): README.md. */
#define THREADS 3
#ifndef ROUNDS
#define ROUNDS 2
#endif

byte state; /* 0 free, else twice the number of the thread that holds it, and 1 if one may sleep */
byte inside;
byte asleep; /* threads that the kernel has on the word, a set */

proctype thread(byte number)
{
    byte round, got;
    byte me = 2 * number + 2;
    do
    :: round < ROUNDS ->
        /* lock_take */
        atomic {
            got = state;
            if
            :: state == 0 -> state = me
            :: else
            fi
        };
        if
        :: got != 0 ->
            /* lock_wait */
            if
            :: atomic { /* spins with luck */
                state == 0;
                state = me;
                got = 0
            }
            :: true
            fi;
            do
            :: got != 0 ->
again:          /* lock_claim: loads, and exchanges if nothing came in between. */
                got = state;
                if
                :: got & 1
                :: else ->
                    atomic {
                        if
                        :: state == got ->
#ifdef BREAK_FORGET_SLEEPERS
                            state = (got == 0 -> me : got | 1)
#else
                            state = (got == 0 -> me : got) | 1
#endif
                        :: else -> goto again
                        fi
                    }
                fi;
                assert(got == 0 || (got & ~1) != me);
                if
                :: got != 0 ->
                    /* The kernel compares and puts to sleep in one step. */
                    atomic {
                        if
                        :: state == (got | 1) -> asleep = asleep | (1 << number)
                        :: else
                        fi
                    };
                    !(asleep & (1 << number))
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
        :: got & 1 ->
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
