/* Which of a thread's frees come to the slow path though its stacks would serve them. Where no
 * other thread looks after what lies idle, a thread that has freed much and then goes on with what
 * its stacks hold would keep it for ever. */
#ifndef HAKMEM_LIFE_VISITS_H
#define HAKMEM_LIFE_VISITS_H

#include "front/cache.h"

/* After memory was freed, without locks, for the calling thread's own cache. */
void visits_settle(struct cache *cache);

/* Closes them because what now lies idle may be all that there will be: the program's calls may
 * need the slow path no more. */
void visits_begin(struct cache *cache);

/* The same after a step that has given so many bytes back. */
void visits_settle_after(struct cache *cache, size_t returned);

/* Whether a free that came for this finds that it is time to give memory back. */
bool visits_find_rest(struct cache *cache);

#endif
