#include "lives.h"

#include "support.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static void *thread_main(void *argument);

static void start_thread(struct life *life)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 * KiB);
    life->before = pthread_self();
    int error = pthread_create(&thread, &attributes, thread_main, life);
    if (error != 0)
        fail("pthread_create: %s", strerror(error));
    pthread_attr_destroy(&attributes);
}

static void join(pthread_t thread)
{
    int error = pthread_join(thread, NULL);
    if (error != 0)
        fail("pthread_join: %s", strerror(error));
}

static void *thread_main(void *argument)
{
    struct life *life = argument;
    struct lives *lives = life->lives;
    lives->live(life->seat, life->generation);
    if (life->generation > 0)
        join(life->before);
    if (++life->generation < lives->generations) {
        start_thread(life);
        return NULL;
    }
    life->before = pthread_self();
    pthread_mutex_lock(&lives->lock);
    if (--lives->working == 0)
        pthread_cond_signal(&lives->all_done);
    pthread_mutex_unlock(&lives->lock);
    return NULL;
}

void lives_start(struct lives *lives)
{
    pthread_mutex_init(&lives->lock, NULL);
    pthread_cond_init(&lives->all_done, NULL);
    lives->working = lives->seats;
    for (unsigned i = 0; i < lives->seats; i++) {
        lives->each[i] = (struct life){.lives = lives, .seat = i};
        start_thread(&lives->each[i]);
    }
}

bool lives_ended(struct lives *lives, unsigned seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    int error = 0;
    pthread_mutex_lock(&lives->lock);
    while (lives->working != 0 && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&lives->all_done, &lives->lock, &until);
    bool ended = lives->working == 0;
    pthread_mutex_unlock(&lives->lock);
    for (unsigned i = 0; ended && i < lives->seats; i++)
        join(lives->each[i].before);
    return ended;
}
