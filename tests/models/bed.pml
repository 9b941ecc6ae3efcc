/* A cache is put to bed: robbed, closed by the owner's own pointer to it, its array's pages given
 * back to the kernel, and adopted again by its owner: README.md. */
#ifdef BREAK_GIVEN
/* Another thread has the array: a late store spoils it. */
bit given;
#define DRAINED(n) assert(!given || where[n] < SLOT)
#endif

#define ANY
#include "owner.pml"
#include "steal.pml"

#define NONE 0 /* in MINE: a shared cache that is closed */
#define CACHE 1
#define GONE 2 /* the same, of a thread that ends */
#define ZERO 6 /* a slot whose page was purged */

byte late;
bit dead; /* the thread has flushed its cache and gave it up; lock: cache */
bit away; /* the thread is no more, nor are its variables */

/* The owner finds its cache asleep. */
inline adopt()
{
    assert(!dead);
#ifdef BREAK_GIVEN
    given = 0;
#endif
    if
#ifndef BREAK_NO_RECOVERY
    :: mem[TOP] == bottom + 1 ->
#ifdef REACH_LATE
        assert(false);
#endif
        late = mem[TOPMOST]
#endif
    :: else
    fi;
    bottom = BASE;
    mem[TOP] = BASE;
    AT(BASE) = MARK;
    if
    :: late != MARK ->
        mem[TOP] = BASE + 1;
        AT(BASE + 1) = late;
        late = MARK
    :: else
    fi;
    mem[TOPMOST] = AT(mem[TOP]);
    mem[LIMIT] = OPEN;
    mem[MINE] = CACHE
}

inline come_in()
{
    if
    :: mem[MINE] == NONE -> adopt()
    :: else
    fi;
    noted = 0; /* the slow path leaves topmost as it is in the stack */
    audit()
}

proctype owner()
{
    byte t, x, y, p, c;
    bit slow;
end:
    do
    :: atomic { load(MINE, c) };
        if
        :: c != CACHE -> slow = 1
        :: else ->
            c = 0;
            pop()
        fi;
        if
        :: slow ->
            take_lock();
            d_step {
                come_in();
                pop_in_slow_path();
                slow = 0;
                locked = 0
            }
        :: else
        fi
    :: held != 0 ->
        choose();
        atomic { load(MINE, c) };
        if
        :: c != CACHE -> slow = 1
        :: else ->
            c = 0;
            push()
        fi;
        if
        :: slow ->
            take_lock();
            d_step {
                pool = pool | SET(p); /* for the audit */
                come_in();
                flush_in_slow_path();
                slow = 0;
                locked = 0
            }
        :: else
        fi
#ifdef MORTAL
    :: true -> /* a destructor, which sees the cache asleep or awake */
#ifdef BREAK_GONE_UNLOCKED
        atomic {
            ROOM;
            store(MINE, GONE)
        };
#endif
        take_lock();
        d_step {
#ifndef BREAK_GONE_UNLOCKED
            come_in();
            mem[MINE] = GONE;
#endif
            do
            :: mem[TOP] > bottom ->
                pool = pool | SET(AT(mem[TOP]));
                mem[TOP] = mem[TOP] - 1
            :: else -> break
            od;
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
        if
        :: c == NONE -> adopt()
        :: else
        fi;
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

proctype thief()
{
    byte t0, x, outcome, i;
    bit marked, topped, fine;
end:
    do
    :: atomic {
        !locked && mem[MINE] != NONE && !dead;
#ifndef BREAK_NOT_SHUT
        change(LIMIT, 0);
        change(MINE, NONE);
        assert(!away);
#endif
        locked = 1
    };
        rob();
        if
#ifdef BREAK_NO_NOTE
        :: outcome != SKIPPED ->
#else
        :: outcome != SKIPPED && !noted ->
#endif
#ifdef BREAK_NOT_SHUT
            atomic {
                assert(!away);
                change(MINE, NONE)
            };
            membarrier();
#endif
            i = BASE;
            do
            :: i <= OPEN ->
                atomic {
                    change(SLOT + i, ZERO);
                    i++
                }
            :: else -> break
            od;
            atomic {
#ifdef BREAK_GIVEN
                given = 1;
#endif
                i = 0;
                outcome = 0;
                locked = 0
            }
        :: true ->
            atomic {
                change(LIMIT, OPEN);
                change(MINE, CACHE);
                outcome = 0;
                locked = 0
            }
        fi
    od
}

init
{
    atomic {
        start();
        mem[MINE] = CACHE;
        run drainer();
        run owner();
        run thief()
    }
}
