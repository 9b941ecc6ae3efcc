/* A cache is closed to frees and opened again, by its owner, by another thread for all caches, and
 * by another process, which takes no lock: README.md. */
#define BINS 2

bit lock;       /* the cache's */
bit own;        /* a reason of the cache's; lock: cache */
bit all;        /* a reason of all caches' */
bit outside;    /* another process gave an order */
bit open[BINS]; /* the inverses that are not 0 */

bit all_told;     /* `all` was settled in this cache */
bit outside_told; /* the other process has closed all bins, and nobody has obeyed since */

#define REASONS (own || all || outside)
#define SHUT (!open[0] && !open[1])

inline take_lock()
{
    atomic {
        !lock;
        lock = 1
    }
}

inline unlock()
{
    d_step {
        assert(!(own || all_told || outside_told) || SHUT);
        lock = 0
    }
}

/* cache_settle. Each look is two loads. */
inline settle()
{
    do
    :: seen = own || all;
        seen = seen || outside;
        open[0] = !seen;
        open[1] = !seen;
#ifdef BREAK_ONE_LOOK
        break
#else
        now = own || all;
        now = now || outside;
        if
        :: now == seen -> break
        :: else
        fi
#endif
    od
}

proctype owner()
{
    bit seen, now;
    byte times = 2;
    do
    :: times > 0 ->
        take_lock();
        own = !own;
        settle();
        unlock();
        times--
    :: else -> break
    od
}

/* heap_close, on and off */
proctype other()
{
    bit seen, now;
#ifdef BREAK_CLOSE_FIRST
    take_lock();
    open[0] = 0;
    open[1] = 0;
    unlock();
    d_step {
        all = 1;
        all_told = 1
    };
#else
    all = 1;
    take_lock();
    settle();
    all_told = 1;
    unlock();
#endif
    all_told = 0;
    all = 0;
    take_lock();
    settle();
    unlock()
}

/* look/order.c */
proctype process()
{
#ifdef BREAK_REASON_LAST
    open[0] = 0;
    open[1] = 0;
    d_step {
        outside = 1;
        outside_told = 1
    }
#else
    outside = 1;
    open[0] = 0;
    d_step {
        open[1] = 0;
        outside_told = outside
    };
#ifndef BREAK_SAID_ONCE
    /* Where somebody has obeyed in between, what was closed since is to be opened, too. */
    outside = 1
#endif
#endif
}

/* heap_open_ordered */
proctype obeys()
{
    bit seen, now;
end:
    do
    :: outside ->
        d_step {
            outside = 0;
            outside_told = 0
        };
        take_lock();
        settle();
        unlock()
    od
}

init
{
    d_step {
        open[0] = 1;
        open[1] = 1
    };
    atomic {
        run owner();
        run other();
        run process();
        run obeys()
    };
    /* When all have done what they had to do, the cache is open. */
    timeout;
    assert(!(REASONS));
    assert(open[0] && open[1]);
#ifdef REACH_END
    assert(false)
#endif
}
