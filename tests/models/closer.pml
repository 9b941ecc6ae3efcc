/* Another thread closes a cache, so that each operation of the owner takes the slow path, and
 * opens it again: README.md. */
#include "owner.pml"

#define CLOSED 0 /* in MINE: a shared cache that is closed */
#define CACHE 1
#define GONE 2 /* the same, of a thread that ends */

bit closed; /* from here on every operation that begins takes the slow path */
bit dead;   /* the thread gave its cache up; lock: cache */
bit away;   /* the thread is no more, nor are its variables */

/* On a weak machine an owner may see later that it is closed. Nothing but that may go wrong. */
#if defined(WEAK) && !defined(REACH_LATE)
#define ON_TIME true
#else
#define ON_TIME !late
#endif

#ifdef BREAK_ENDED
#define LIVING true
#else
#define LIVING !dead
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
#ifdef MORTAL
    :: true ->
#ifdef BREAK_GONE_UNLOCKED
        atomic {
            ROOM;
            store(MINE, GONE)
        };
#endif
        take_lock();
        d_step {
            audit();
#ifndef BREAK_GONE_UNLOCKED
            mem[MINE] = GONE;
#endif
            empty_in_slow_path();
            dead = 1;
            locked = 0
        };
        break
#endif
    od;
    /* Destructors that run later may free. */
    do
    :: held != 0 ->
        choose();
        atomic { load(MINE, c) };
        atomic {
            assert(c == GONE);
            pool = pool | SET(p);
            p = 0;
            c = 0
        }
    :: else -> break
    od;
    assert(pool == ALL);
    away = 1
}

proctype closer()
{
    byte x;
    bit done;
end:
    do
    :: atomic {
        !locked && LIVING;
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
        atomic {
            assert(!away);
            change(MINE, CLOSED)
        };
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
            if
            :: !dead ->
                change(LIMIT, OPEN);
                change(MINE, CACHE)
            :: else
            fi;
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
