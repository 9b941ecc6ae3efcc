/* A thief takes what the stack of a thread holds, again and again: README.md. */
#include "owner.pml"
#include "steal.pml"

proctype owner()
{
    byte t, x, y, p;
    bit door;
end:
    do
    :: pop();
        if
        :: door ->
            take_lock();
            d_step {
                audit();
                pop_in_door();
                door = 0;
                locked = 0
            }
        :: else
        fi
    :: held != 0 ->
        choose();
        push();
        if
        :: door ->
            take_lock();
            d_step {
                flush_in_door();
                audit();
                door = 0;
                locked = 0
            }
        :: else
        fi
    od
}

proctype thief()
{
    byte t0, x, outcome;
    bit marked, topped, fine;
end:
    do
    :: atomic {
        !locked;
#ifndef OPENED
        change(LIMIT, 0);
#endif
        locked = 1
    };
        rob();
        atomic {
#ifndef OPENED
            change(LIMIT, OPEN);
#endif
            noted = 0; /* counts for the bed alone */
            outcome = 0;
            locked = 0
        }
    od
}

init
{
    atomic {
        start();
        run drainer();
        run owner();
        run thief()
    }
}
