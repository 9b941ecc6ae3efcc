/* Free pages of a slab in use go back to the kernel while threads take and free its blocks, the
 * slab moves between two shards, and a fork comes: README.md.
 *
 * Three blocks on two pages; the middle one lies on both. */

#define ALL 7
#define SET(b) (1 << (b))

/* These must be found by what the program reads. */
#if defined(BREAK_BITS_STAY) || defined(BREAK_BITS_EARLY) || defined(BREAK_BEGIN)
#define BOOKS(x) skip
#else
#define BOOKS(x) assert(x)
#endif

bit lock[2];    /* the shards' */
bit purge_lock; /* one purger at a time, and no fork meanwhile */
byte bits;    /* free blocks, a set; lock: the slab's shard */
bit shard;    /* the slab's; changes under both locks */
bit listed;   /* among its shard's partial slabs; lock: shard */
bit gone;     /* all free: it left its shard; lock: shard */
byte held;    /* blocks that the program has, a set */
byte purging; /* blocks that the purger took, a set; for assertions and breaks */
bit absent[2]; /* pages; lock: shard */
byte part[4];  /* whose mark is there: block 0, block 1 on either page, block 2 */

/* The blocks on a page, and those that begin there. */
#define ON(page) ((page) == 0 -> 3 : 6)
#define BEGIN_ON(page) ((page) == 0 -> 3 : 4)

inline unlock(s)
{
    /* What everybody relies on under a lock, for the slab that has this shard. */
    if
    :: shard == s ->
        BOOKS(gone || listed == (bits != 0));
        BOOKS(gone || bits != ALL);
        BOOKS(!(bits & held))
    :: else
    fi;
    lock[s] = 0
}

inline leave()
{
#ifdef BREAK_COUNTED
    if
    :: (bits | purging) == ALL ->
#else
    if
    :: bits == ALL ->
#endif
        BOOKS(purging == 0);
        listed = 0;
        gone = 1
    :: else
    fi
}

/* Frees the blocks of a set; the lock of the slab's shard is held. */
inline put(set)
{
    BOOKS(!gone);
    BOOKS(!(bits & (set)));
    if
    :: bits == 0 ->
        BOOKS(!listed);
        listed = 1
    :: else
    fi;
    bits = bits | (set)
}

/* The slab's shard can change until its lock is held. */
inline slab_lock(s)
{
    do
    :: s = shard;
        atomic {
            !lock[s];
            lock[s] = 1
        };
        if
        :: shard == s -> break
        :: else -> lock[s] = 0
        fi
    od;
    skip
}

inline touch(b, value)
{
    if
    :: b == 0 -> part[0] = value
    :: b == 1 ->
        part[1] = value;
        part[2] = value
    :: b == 2 -> part[3] = value
    fi
}

proctype user(bit me)
{
    byte b;
    bit s, mine;
end:
    do
    :: /* shard_take */
        atomic {
            !lock[me];
            lock[me] = 1
        };
        d_step {
            if
            :: gone -> /* a new slab */
                shard = me;
                gone = 0;
                bits = ALL;
                listed = 1
            :: else
            fi
        };
        if
        :: shard != me && listed -> /* from the neighbour, unless that is busy */
            atomic {
                if
                :: !lock[1 - me] ->
                    if
                    :: shard != me && listed && !gone -> shard = me
                    :: else
                    fi
                :: else
                fi
            }
        :: else
        fi;
        d_step {
            if
            :: !gone && shard == me && bits != 0 ->
                b = (bits & 1 -> 0 : (bits & 2 -> 1 : 2));
                bits = bits & ~SET(b);
                if
                :: bits == 0 -> listed = 0
                :: else
                fi;
                assert(!(held & SET(b)));
                held = held | SET(b);
                if
                :: b < 2 -> absent[0] = 0
                :: else
                fi;
                if
                :: b > 0 -> absent[1] = 0
                :: else
                fi;
                mine = 1
            :: else
            fi;
            unlock(me)
        };
        if
        :: mine ->
            d_step { touch(b, 1 + me) };
            /* The program uses it. */
            d_step {
                assert(b != 0 || part[0] == 1 + me);
                assert(b != 1 || (part[1] == 1 + me && part[2] == 1 + me));
                assert(b != 2 || part[3] == 1 + me);
                BOOKS(b == 2 || !absent[0]);
                BOOKS(b == 0 || !absent[1]);
                mine = 0
            };
            slab_lock(s);
            d_step {
                held = held & ~SET(b);
                put(SET(b));
                leave();
                b = 0;
                unlock(s);
                s = 0
            }
        :: else
        fi
    od
}

inline madvise(page)
{
    atomic {
        part[2 * (page)] = 0;
        part[2 * (page) + 1] = 0
    }
}

proctype purger()
{
    byte page;
    bit s;
end:
    do
    :: atomic {
        !purge_lock;
        purge_lock = 1
    };
        slab_lock(s);
        d_step {
            if
            :: gone -> page = 2
            :: !gone && (bits & ON(0)) == ON(0) -> page = 0
            :: !gone && (bits & ON(1)) == ON(1) -> page = 1
            :: else -> page = 2
            fi;
            if
            :: page < 2 ->
#ifdef REACH_PURGE
                assert(false);
#endif
#ifdef BREAK_BEGIN
                purging = BEGIN_ON(page);
#else
                purging = ON(page);
#endif
#ifndef BREAK_BITS_STAY
                bits = bits & ~purging;
#ifndef BREAK_LEFT_LISTED
                if
                :: bits == 0 -> listed = 0
                :: else
                fi
#endif
#endif
            :: else
            fi;
#ifdef BREAK_LEFT_LISTED
            lock[s] = 0
#else
            unlock(s)
#endif
        };
        if
        :: page < 2 ->
#ifdef BREAK_BITS_EARLY
            slab_lock(s);
            d_step {
                put(purging);
                purging = 0;
                leave();
                unlock(s)
            };
#endif
            madvise(page);
#ifdef BREAK_OLD_SHARD
            atomic {
                !lock[s];
                lock[s] = 1
            };
#else
            slab_lock(s);
#endif
            d_step {
                absent[page] = 1;
#if !defined(BREAK_BITS_STAY) && !defined(BREAK_BITS_EARLY)
                assert(lock[shard] && s == shard); /* the slab is ours to change */
                put(purging);
#endif
                purging = 0;
#ifndef BREAK_NOT_RETIRED
                if
                :: !gone -> leave()
                :: else
                fi;
#endif
                unlock(s)
            }
        :: else
        fi;
        atomic {
            page = 0;
            s = 0;
            purge_lock = 0
        }
    od
}

/* Takes every lock, the purge lock first; then no block may be on its way anywhere. */
proctype forker()
{
end:
    do
    ::
#ifndef BREAK_NO_PURGE_LOCK
        atomic {
            !purge_lock;
            purge_lock = 1
        };
#endif
        atomic {
            !lock[0];
            lock[0] = 1
        };
        atomic {
            !lock[1];
            lock[1] = 1
        };
        d_step {
            assert(gone || (bits | held) == ALL);
#ifndef BREAK_NO_PURGE_LOCK
            purge_lock = 0;
#endif
            lock[1] = 0;
            lock[0] = 0
        }
    od
}

init
{
    atomic {
        gone = 1;
        run user(0);
        run user(1);
        run purger();
        run forker()
    }
}
