/* How a thief takes all that a stack holds while its owner goes on (bed.pml). */

bit noted; /* topmost may be MARK above a block: the thief gave up; lock: cache */

#define IS_TOP atomic { fine = fine && mem[TOP] == t0 }
#define IS_SLOT atomic { fine = fine && AT(t0) == MARK }
#ifndef FIRST
#define FIRST IS_TOP
#define SECOND IS_SLOT
#endif

#ifdef BREAK_TOPMOST_UNSEEN
#define UNSEEN 1
#else
#define UNSEEN 0
#endif

inline steal()
{
#ifdef REACH_STEAL
    assert(false);
#endif
    d_step {
        lj = bottom + 1;
        do
        :: lj <= t0 ->
            li = (lj == t0 -> x : AT(lj));
            assert(li != MARK);
            assert(!(held & SET(li)) && !(pool & SET(li)));
            pool = pool | SET(li);
            lj++
        :: else -> break
        od;
        li = 0;
        lj = 0;
        bottom = t0
    }
}

#define SKIPPED 0
#define ROBBED 1
#define EMPTY 2

/* What the thief does with one class, under the cache's lock, after the limit was set to 0. The
 * outcome to `outcome`. */
inline rob()
{
#ifndef BREAK_NO_FIRST_BARRIER
    membarrier();
#endif
    t0 = mem[TOP];
    if
    :: t0 > bottom ->
        x = AT(t0);
        if
        :: x != MARK && (mem[TOPMOST] == x || UNSEEN) ->
#ifdef BREAK_PLAIN_STORE
            atomic {
                change(SLOT + t0, MARK);
                marked = 1
            };
#else
            cas(SLOT + t0, x, MARK, marked);
#endif
            if
#if defined(BREAK_PLAIN_STORE) || defined(BREAK_TOPMOST_UNSEEN)
            :: marked ->
                atomic {
                    change(TOPMOST, MARK);
                    topped = 1
                }
#else
            :: marked -> cas(TOPMOST, x, MARK, topped)
#endif
            :: else
            fi;
            if
            :: marked && topped ->
#ifndef BREAK_NO_BARRIER
                membarrier();
#endif
                fine = 1;
                FIRST;
                SECOND
            :: else
            fi;
            if
            :: fine ->
                steal();
                noted = 0;
                outcome = ROBBED
            :: !fine && marked ->
                cas(SLOT + t0, MARK, x, fine);
                noted = 1
            :: else
            fi
        :: else
        fi
    :: else -> outcome = EMPTY
    fi;
    atomic {
        t0 = 0;
        x = 0;
        marked = 0;
        topped = 0;
        fine = 0
    }
}
