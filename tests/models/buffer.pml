/* One thread's memory as others see it: the owner's stores wait in a buffer, from which the owner
 * itself reads them at once. They drain in their order (x86), or under WEAK in any order that keeps
 * stores to one word apart; the owner may then also read what a word held before another thread
 * changed it, until the next barrier. Each step of a process is one instruction. */

byte mem[WORDS];
byte where[DEPTH]; /* the buffer, oldest first */
byte value[DEPTH];
byte pending;
#ifdef WEAK
bit has_old[WORDS]; /* what the owner may still read */
byte old[WORDS];
#endif

/* Loop variables; zero between steps. */
byte li;
byte lj;
bit lb;

inline drain_at(which)
{
    mem[where[which]] = value[which];
#ifdef WEAK
    has_old[where[which]] = 0;
    old[where[which]] = 0;
#endif
    li = which;
    do
    :: li + 1 < pending ->
        where[li] = where[li + 1];
        value[li] = value[li + 1];
        li++
    :: else -> break
    od;
    li = 0;
    pending--;
    where[pending] = 0;
    value[pending] = 0
}

/* What an atomic instruction or a lock does to the owner. */
inline settle()
{
    do
    :: pending > 0 -> drain_at(0)
    :: else -> break
    od;
#ifdef WEAK
    li = 0;
    do
    :: li < WORDS ->
        has_old[li] = 0;
        old[li] = 0;
        li++
    :: else -> break
    od;
    li = 0
#endif
}

inline load(a, r)
{
    r = mem[a];
    li = 0;
    do
    :: li < pending ->
        if
        :: where[li] == (a) ->
            r = value[li];
            lb = 1
        :: else
        fi;
        li++
    :: else -> break
    od;
    li = 0;
#ifdef WEAK
    if
    :: !lb && has_old[a] -> r = old[a]
    :: !lb && has_old[a] ->
        has_old[a] = 0;
        old[a] = 0
    :: else
    fi;
#endif
    lb = 0
}

/* The caller makes sure that the buffer has room. */
#define ROOM (pending < DEPTH)
inline store(a, v)
{
    where[pending] = a;
    value[pending] = v;
    pending++
}

/* Another thread's store, which takes effect at once. */
inline change(a, v)
{
#ifdef WEAK
    has_old[a] = 1;
    old[a] = mem[a];
#endif
    mem[a] = v
}

/* Another thread's compare and swap. */
inline cas(a, from, to, done)
{
    d_step {
        if
        :: mem[a] == (from) ->
            change(a, to);
            done = 1
        :: else -> done = 0
        fi
    }
}

/* Stores with release, by their number in the buffer: nothing before drains after. */
#ifndef RELEASED
#define RELEASED(n) 0
#endif

proctype drainer()
{
end:
    do
#ifdef WEAK
    :: atomic {
        pending > 0;
        lj = 0;
        do
        :: lj + 1 < pending -> lj++
        :: break
        od;
        li = 0;
        do
        :: li < lj ->
            lb = lb || where[li] == where[lj];
            li++
        :: else -> break
        od;
        li = 0;
        if
        :: lj == 0 || (!lb && !(RELEASED(lj))) -> drain_at(lj)
        :: else
        fi;
        lb = 0;
        lj = 0
    }
#else
    :: d_step {
        pending > 0;
        drain_at(0)
    }
#endif
    od
}
