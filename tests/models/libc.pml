/* A fork holds the heap and waits for libc's locks, whose holders need the heap: README.md. */
#define NONE 0
#define HOLDS 1
#define LASTS 2
#ifndef FORKS
#define FORKS 2
#endif
#define FREES 2

bit cache_lock;         /* all caches' locks: one thread at a time is in the heap */
bit list, file, names;  /* libc's: the list of files, one of them, the database of names */
bit reserve;            /* the reserve's lock */
byte state = NONE;
byte inside;            /* threads in the middle of the heap */
byte notes, freed;      /* blocks noted, blocks back in the heap */
bit left, some_left;    /* the cache of a thread that has ended; a look is worth it */
byte ended;             /* how often that cache was given up */
bit end_awaited;        /* the thread has ended, for who joins it */
byte over;              /* processes that came to their end */

inline take(lock)
{
    atomic { lock == 0 -> lock = 1 }
}

/* lock_enter */
inline enter(got)
{
    do
    :: atomic { cache_lock == 0 -> cache_lock = 1; got = 1; break }
#ifndef BREAK_WAIT
    :: atomic { cache_lock == 1 && state == HOLDS -> state = LASTS } /* it has waited for a while */
    :: atomic { cache_lock == 1 && state == LASTS -> got = 0; break }
#endif
    od
}

inline from_reserve()
{
    take(reserve);
    reserve = 0
}

/* deferred_drain */
inline drain(got, n)
{
    do
    :: notes == 0 -> break
    :: else ->
        if
        :: state != NONE -> break
        :: else
        fi;
        enter(got);
        if
        :: got ->
            atomic { n = notes; notes = 0 }
            freed = freed + n;
            n = 0;
            cache_lock = 0
        :: else -> break
        fi
    od;
    got = 0
}

/* caches_end_left */
inline end_left(got, mine)
{
    do
    :: !some_left -> break
    :: else ->
        if
        :: state != NONE -> break
        :: else
        fi;
        enter(got);
        if
        :: got ->
            some_left = 0;
#ifdef BREAK_NO_EXCHANGE
            mine = left;
            cache_lock = 0; /* as if no lock were needed from here */
            ended = ended + mine;
            left = 0
#else
            atomic { mine = left; left = 0 }
            ended = ended + mine;
            cache_lock = 0
#endif
        :: else -> break
        fi
    od;
    mine = 0;
    got = 0
}

inline use_heap()
{
    inside++;
    inside--
}

inline do_malloc(got)
{
    enter(got);
    if
    :: got -> use_heap(); cache_lock = 0
    :: else -> from_reserve()
    fi;
    got = 0
}

inline do_free(got, n)
{
    enter(got);
    if
    :: got -> use_heap(); freed++; cache_lock = 0
    :: else ->
        from_reserve(); /* the note */
        notes++;
#ifndef BREAK_NO_LOOK
        drain(got, n)
#endif
    fi;
    got = 0
}

/* Has a file of its own open, and joins another thread meanwhile. */
proctype owner()
{
    bit got;
    byte n;
    take(file);
    do_malloc(got);
    do_free(got, n);
#ifdef BREAK_LARGE
    use_heap(); /* a large block, which took the inner locks by itself */
#endif
    end_awaited;
    file = 0;
    over++
}

/* thread_end */
proctype ender()
{
    bit got, mine;
    byte n;
    do_free(got, n);
    enter(got);
    if
    :: got -> use_heap(); ended++; cache_lock = 0
    :: else ->
#ifdef REACH_LEFT
        assert(false);
#endif
        left = 1;
        some_left = 1;
        end_left(got, mine)
    fi;
    end_awaited = 1;
    over++
}

proctype flusher()
{
    take(list);
    take(file);
    file = 0;
    list = 0;
    over++
}

proctype asker()
{
    bit got;
    take(names);
    do_malloc(got);
    names = 0;
    over++
}

/* fork_prepare, libc's part, fork_parent. */
proctype forker()
{
    bit got, mine;
    byte n, forks;
    do
    :: forks < FORKS ->
        forks++;
        take(cache_lock);
        state = HOLDS;
#ifdef BREAK_RESERVE
        take(reserve);
#endif
        take(names);
        take(list);
        assert(inside == 0); /* what the child finds is whole */
        list = 0;
        names = 0;
#ifdef BREAK_RESERVE
        reserve = 0;
#endif
#ifdef BREAK_DRAIN_FIRST
        atomic { n = notes; notes = 0 }
        freed = freed + n;
        n = 0;
        state = NONE;
        cache_lock = 0;
#else
        state = NONE;
        cache_lock = 0;
        drain(got, n);
#endif
        end_left(got, mine)
    :: else -> break
    od;
    over++
}

init
{
    atomic {
        run owner();
        run ender();
        run flusher();
        run asker();
        run forker()
    }
    over == 5;
    assert(notes == 0 && freed == FREES);
    assert(!left && ended == 1)
}
