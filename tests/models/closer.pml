/* Another thread closes a cache, so that each operation of the owner takes the slow path, and
 * opens it again: README.md. */
#include "owner.pml"

#define CLOSED 0 /* in MINE: a shared cache that is closed */
#define CACHE 1

bit closed; /* from here on every operation that begins takes the slow path */

/* The closer has no barrier, and an operation may begin late. Nothing but that may go wrong. */
#ifdef PATIENT
#define ON_TIME true
#define BREAK_NO_BARRIER
#else
#define ON_TIME !late
#endif

inline shut_again()
{
#ifdef BREAK_BY_STACK
    if
    :: closed -> mem[TOPMOST] = MARK
    :: else
    fi
#else
    skip
#endif
}

proctype owner()
{
    byte t, x, y, p, c;
    bit slow, late;
end:
    do
    :: atomic {
        load(MINE, c);
        late = closed
    };
        if
        :: c == CLOSED -> slow = 1
        :: else -> pop()
        fi;
        c = 0;
        if
        :: slow ->
            take_lock();
            d_step {
                audit();
                pop_in_slow_path();
                shut_again();
                slow = 0;
                locked = 0
            }
        :: else -> assert(ON_TIME)
        fi
    :: held != 0 ->
        choose();
        atomic {
            load(MINE, c);
            late = closed
        };
        if
        :: c == CLOSED -> slow = 1
        :: else -> push()
        fi;
        c = 0;
        if
        :: slow ->
            take_lock();
            d_step {
                flush_in_slow_path();
                audit();
                shut_again();
                slow = 0;
                locked = 0
            }
        :: else -> assert(ON_TIME)
        fi
    od
}

proctype closer()
{
    byte x;
    bit done;
end:
    do
    :: atomic {
        !locked;
        locked = 1
    };
#ifdef BREAK_BY_STACK
        atomic { change(LIMIT, 0) };
        do
        :: !done ->
            x = mem[TOPMOST];
            cas(TOPMOST, x, MARK, done)
        :: else -> break
        od;
        x = 0;
        done = 0;
#else
        atomic { change(MINE, CLOSED) };
#endif
#ifndef BREAK_NO_BARRIER
        membarrier();
#endif
        atomic {
            closed = 1;
            locked = 0
        };
#ifdef REACH_CLOSED
        assert(false);
#endif
        atomic {
            !locked;
            locked = 1;
            closed = 0
        };
        atomic {
            change(LIMIT, OPEN);
            change(MINE, CACHE);
            locked = 0
        }
    od
}

init
{
    atomic {
        start();
        mem[MINE] = CACHE;
        run drainer();
        run owner();
        run closer()
    }
}
