/* The fast path of a stack's owner (cache_pop and cache_push), and where blocks are. */

#define MARK 0 /* no block: the window's base */
#define TOP 0
#define TOPMOST 1
#define LIMIT 2
#define MINE 3
#define SLOT 4 /* of level 0, which lies below the lowest place */
#define BASE 1 /* the lowest place, which holds MARK */
#ifndef LEVELS
#define LEVELS 2
#endif
#ifndef BLOCKS
#define BLOCKS 3
#endif
#define OPEN (BASE + LEVELS)
#ifndef MORE
#define MORE 0 /* words of the model itself, after the slots */
#endif
#define WORDS (SLOT + OPEN + 1 + MORE)
#ifndef DEPTH
#define DEPTH 5
#endif

#include "buffer.pml"

#define SET(b) (1 << ((b)-1))
#define ALL ((1 << BLOCKS) - 1)
#define AT(level) mem[SLOT + (level)]

bit locked; /* the cache's lock */
byte held;  /* blocks that the program has, a set */
byte pool;  /* blocks whose bits say free, a set */

inline give_to_program(b)
{
    assert(b != MARK && b <= BLOCKS);
    assert(!(held & SET(b)) && !(pool & SET(b)));
    held = held | SET(b)
}

/* Each block is in exactly one place. For a process that has the lock and whose stores have reached
 * memory. */
inline audit()
{
    assert(!(held & pool));
    lj = held | pool;
    li = BASE + 1;
    do
    :: li <= mem[TOP] ->
        assert(AT(li) != MARK);
        assert(!(lj & SET(AT(li))));
        lj = lj | SET(AT(li));
        li++
    :: else -> break
    od;
    assert(lj == ALL);
    li = 0;
    lj = 0
}

inline take_lock()
{
    atomic {
        !locked;
        locked = 1;
        settle()
    }
}

/* Pops a block for the program, or leaves `slow` set. */
inline pop()
{
    atomic {
        ROOM;
        load(TOP, t);
        store(TOP, t - 1);
        t = 0
    };
    atomic { load(TOPMOST, x) };
    if
    :: x == MARK ->
        atomic {
            ROOM;
            load(TOP, t);
            store(TOP, t + 1);
            t = 0;
            slow = 1
        }
    :: else ->
        atomic {
            load(TOP, t);
            load(SLOT + t, y);
            t = 0
        };
        atomic {
            ROOM;
            store(TOPMOST, y);
            y = 0;
            give_to_program(x);
            x = 0
        }
    fi
}

/* Pushes p, or leaves `slow` set. The look at topmost finds errors of the program alone and is left
 * out. */
/* Push's stores; t is the top before. Two more orders change nothing. */
#define PUSH_SLOT \
    atomic { ROOM; store(SLOT + t + 1, p) }
#define PUSH_TOPMOST \
    atomic { ROOM; store(TOPMOST, p) }
#define PUSH_TOP \
    atomic { ROOM; store(TOP, t + 1) }
#ifndef PUSH_1
#define PUSH_1 PUSH_SLOT
#define PUSH_2 PUSH_TOPMOST
#define PUSH_3 PUSH_TOP
#endif

inline push()
{
    atomic {
        load(TOP, t);
        load(LIMIT, y);
    };
    if
    :: t >= y ->
        atomic {
            t = 0;
            y = 0;
            slow = 1
        }
    :: else ->
        y = 0;
        PUSH_1;
        PUSH_2;
        PUSH_3;
        atomic {
            t = 0;
            p = 0
        }
    fi
}

/* A block of the program's, on its way into push. */
inline choose()
{
    atomic {
        if
        :: held & SET(1) -> p = 1
        :: held & SET(2) -> p = 2
        :: held & SET(3) -> p = 3
        fi;
        held = held & ~SET(p)
    }
}

/* ---- inside the slow path: the lock is held and the owner's stores have drained ---- */

inline reload()
{
    if
    :: mem[TOPMOST] == MARK && mem[TOP] > BASE -> mem[TOPMOST] = AT(mem[TOP])
    :: else
    fi
}

inline refill()
{
    mem[TOP] = BASE;
    p = 1;
    do
    :: p <= BLOCKS && (pool & SET(p)) && x == MARK ->
        x = p;
        pool = pool & ~SET(p);
        p++
    :: p <= BLOCKS && (pool & SET(p)) && x != MARK && mem[TOP] < OPEN - 1 ->
        mem[TOP] = mem[TOP] + 1;
        AT(mem[TOP]) = p;
        pool = pool & ~SET(p);
        p++
    :: p <= BLOCKS && !(pool & SET(p)) -> p++
    :: else -> break
    od;
    p = 0;
    mem[TOPMOST] = AT(mem[TOP])
}

/* The block to x, or MARK when memory is out. */
inline pop_in_slow_path()
{
    reload();
    if
    :: mem[TOPMOST] != MARK ->
        x = mem[TOPMOST];
        mem[TOP] = mem[TOP] - 1;
        mem[TOPMOST] = AT(mem[TOP])
    :: else ->
        assert(AT(mem[TOP]) == MARK);
        refill()
    fi;
    if
    :: x != MARK -> give_to_program(x)
    :: else
    fi;
    x = 0
}

/* The whole stack goes to bits. */
inline empty_in_slow_path()
{
    do
    :: mem[TOP] > BASE ->
        assert(!(pool & SET(AT(mem[TOP]))) && !(held & SET(AT(mem[TOP]))));
        pool = pool | SET(AT(mem[TOP]));
        mem[TOP] = mem[TOP] - 1
    :: else -> break
    od;
    mem[TOP] = BASE;
    mem[TOPMOST] = AT(BASE)
}

/* And p. */
inline flush_in_slow_path()
{
    pool = pool | SET(p);
    p = 0;
    empty_in_slow_path()
}

inline start()
{
    mem[TOP] = BASE;
    mem[LIMIT] = OPEN;
    pool = ALL
}
