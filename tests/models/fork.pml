/* Another thread forks at any instruction of the owner, whose stack the child finds: README.md. */
#ifndef BREAK_PLAIN_TOP
/* Push stores top with release, pop needs not. */
#define RELEASED(n) (where[n] == MAIL || (where[n] == TOP && value[n] > mem[TOP]))
#else
#define RELEASED(n) (where[n] == MAIL)
#endif
#define MORE 1
#define MAIL (SLOT + OPEN + 1) /* where the owner hands a block to the forking thread */

#include "owner.pml"

byte other; /* blocks that the forking thread has, a set */

proctype owner()
{
    byte t, x, y, p;
    bit slow;
end:
    do
    :: pop();
        if
        :: slow ->
            take_lock();
            d_step {
                pop_in_slow_path();
                slow = 0;
                locked = 0
            }
        :: else
        fi
    :: held != 0 ->
        choose();
        push();
        if
        :: slow ->
            take_lock();
            d_step {
                flush_in_slow_path();
                slow = 0;
                locked = 0
            }
        :: else
        fi
    :: held != 0 -> /* to the forking thread, with release */
        atomic {
            ROOM;
            load(MAIL, t);
            t == MARK;
            if
            :: held & SET(1) -> p = 1
            :: held & SET(2) -> p = 2
            :: held & SET(3) -> p = 3
            fi;
            held = held & ~SET(p);
            store(MAIL, p);
            p = 0
        }
    od
}

/* What the child does with the owner's stack, on its own memory. */
inline drain_in_child()
{
    lj = 0; /* blocks that it has freed */
    li = BASE + 1;
#ifdef BREAK_TOP_BELOW
    lb = mem[TOP] < BASE; /* the difference, without sign, is a huge number of blocks */
    assert(!lb);
#endif
    do
    :: li <= mem[TOP] ->
        x = AT(li);
        assert(x != MARK);
        if
#ifdef BREAK_NO_BITS
        :: true ->
#else
        :: !(SET(x) & (pool | lj)) ->
#endif
            assert(!(SET(x) & other)); /* in use */
            assert(!(SET(x) & (pool | lj)));
            lj = lj | SET(x)
        :: else
        fi;
        li++
    :: else -> break
    od;
    x = 0;
    li = 0;
    lj = 0
}

proctype forker()
{
    byte x;
end:
    do
    :: atomic { /* acquires what the owner released with the block */
        mem[MAIL] != MARK;
        other = other | SET(mem[MAIL]);
        change(MAIL, MARK)
    }
    :: d_step {
        other != 0 && !locked;
        pool = pool | other;
        other = 0
    }
    :: d_step { !locked -> drain_in_child() }
    od
}

init
{
    atomic {
        start();
        run drainer();
        run owner();
        run forker()
    }
}
