/* The scavenger is there exactly while at least two threads use the heap (life/scavenger.c):
 * README.md. */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

#define NONE 0
#define STARTING 1
#define RUNNING 2
#define ENDING 3

byte state = NONE;
byte living = 0;
byte there = 0; /* threads of hakmem's own */
byte busy = 0;  /* threads that come or go just now */

#define ALONE (living <= 1)

proctype thread()
{
    byte round, was;
    do
    :: round < ROUNDS ->
        /* Comes: scavenger_start. */
        atomic {
            busy++;
            living++
        };
come:
        if
        :: ALONE -> goto stays
        :: else
        fi;
enter:
        atomic {
            was = state;
            if
            :: was == NONE -> state = STARTING
            :: else
            fi
        };
        if
        :: was == NONE
#ifdef BREAK_COMES_IN_BETWEEN
        :: was != NONE -> goto stays
#else
        :: was == ENDING ->
            state != ENDING;
            goto enter
        :: was == STARTING || was == RUNNING -> goto stays
#endif
        fi;
#ifndef BREAK_ONE_LOOK_TO_START
        if
        :: ALONE ->
            state = NONE;
#ifndef BREAK_STARTS_ONCE
            goto come
#else
            goto stays
#endif
        :: else
        fi;
#endif
        there++;
        assert(there == 1);
        state = RUNNING;
stays:
        atomic {
            was = 0;
            busy--
        };
#ifdef REACH_RUNNING
        assert(state != RUNNING);
#endif
        /* Goes: scavenger_thread_ends. */
        atomic {
            busy++;
            living--
        };
        if
        :: !ALONE -> goto gone
        :: else
        fi;
leave:
        atomic {
            was = state;
            if
            :: was == RUNNING -> state = ENDING
            :: else
            fi
        };
        if
        :: was == NONE -> goto gone
#ifdef BREAK_GOES_IN_BETWEEN
        :: was == STARTING || was == ENDING -> goto gone
#else
        :: was == STARTING || was == ENDING ->
            state != was;
            goto leave
#endif
        :: was == RUNNING
        fi;
#ifndef BREAK_ONE_LOOK_TO_END
        if
        :: !ALONE ->
            state = RUNNING;
            goto gone
        :: else
        fi;
#endif
        there--;
        assert(there == 0);
        state = NONE;
gone:
        atomic {
            was = 0;
            round++;
            busy--
        }
    :: else -> break
    od
}

/* Whenever nobody comes or goes. */
proctype monitor()
{
end:
    do
    :: atomic {
        busy == 0 ->
            assert((state == RUNNING) == !ALONE);
            assert((there == 1) == !ALONE)
    }
    od
}

init
{
    byte i;
    atomic {
        for (i : 1 .. THREADS) {
            run thread()
        };
        run monitor()
    }
}
