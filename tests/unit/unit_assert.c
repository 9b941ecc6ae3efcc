/* Assertions, and locks that know their rank and holder. Each broken rule ends a child, which
 * prints the rule and the locks that the thread held. Linked with a library that has assertions
 * (base/defs.h). */
#include "back/slices.h"
#include "heap/shards.h"
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "back/meta.h"
#include "front/cache.h"
#include "hakmem/hakmem.h"
#include "life/life.h"
#include "life/purge.h"

static struct lock purge_like = LOCK(PURGE), cache_lock = LOCK(CACHE),
                   other_cache_lock = LOCK(CACHE), shard = LOCK(SHARD), other_shard = LOCK(SHARD),
                   meta = LOCK(META), journal = LOCK(JOURNAL), no_rank;

/* What it says before it dies, of a failed assertion. */
static const char *said_by(void (*breaks)(void))
{
    static char said[4096];
    int pipes[2], status = 0;
    size_t used = 0;
    ssize_t got;
    fflush(NULL);
    EXPECT(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_IGN); /* it ends all the same */
        dup2(pipes[1], STDERR_FILENO);
        breaks();
        _exit(0);
    }
    close(pipes[1]);
    while ((got = read(pipes[0], said + used, sizeof said - 1 - used)) > 0)
        used += (size_t)got;
    said[used] = '\0';
    close(pipes[0]);
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
        fprintf(stderr, "expected an end by SIGABRT, found status %#x; it said: %s\n",
                (unsigned)status, said);
        exit(1);
    }
    return said;
}

static void expect_said(const char *name, void (*breaks)(void), const char *rule, const char *holds)
{
    const char *said = said_by(breaks);
    if (strstr(said, "assertion failed: ") != NULL && strstr(said, rule) != NULL &&
        strstr(said, holds) != NULL)
        return;
    fprintf(stderr, "%s: expected \"%s\" and \"%s\", found: %s\n", name, rule, holds, said);
    exit(1);
}

#define EXPECT_SAID(breaks, rule, holds) expect_said(#breaks, breaks, rule, holds)

#define ORDER "each lock that is held has a lower rank than the one to wait for: "
#define GUARD "who takes a lock inside holds purge, cacheless or a cache's: "

/* ---- order ---- */

static void wrong_order(void)
{
    lock_take(&cache_lock);
    lock_take(&meta);
    lock_take(&shard);
}

static void wrong_order_entering(void)
{
    lock_take(&cache_lock);
    (void)!lock_enter(&purge_like);
}

static void the_same_rank(void)
{
    lock_take(&cache_lock);
    lock_take(&shard);
    lock_take(&other_shard);
}

static void the_same_lock(void)
{
    lock_take(&cache_lock);
    lock_take(&cache_lock);
}

static void two_cache_locks(void)
{
    lock_take(&cache_lock);
    lock_take(&other_cache_lock);
}

static void without_a_rank(void) { lock_take(&no_rank); }

/* ---- holders ---- */

static void released_but_not_held(void) { lock_release(&cache_lock); }

static void *take_cache_lock(void *unused)
{
    lock_take(&cache_lock);
    return unused;
}

static void anothers_lock_released(void)
{
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, take_cache_lock, NULL) == 0);
    pthread_join(thread, NULL);
    lock_release(&cache_lock);
}

static void inside_without_an_outer_lock(void) { lock_take(&shard); }

static void tried_without_an_outer_lock(void) { (void)!lock_try(&journal); }

static void metadata_without_an_outer_lock(void) { meta_take(100); }

static void blocks_without_an_outer_lock(void)
{
    void *p;
    shard_take(0, 0, &p + 1, 1);
}

/* ---- functions whose callers hold a lock ---- */

static void purged_by_two(void)
{
    lock_take(&cache_lock);
    slices_purge(1);
}

static void walk_without_locks(void) { meta_parts(); }

/* ---- preconditions ---- */

static void slices_given_twice(void)
{
    bool zero;
    struct superslab *s;
    lock_take(&cache_lock);
    char *start = slices_take(2, 1, false, &zero, &s);
    slices_give(s, start, 2);
    slices_give(s, start, 2);
}

static void no_metadata(void)
{
    lock_take(&cache_lock);
    meta_give(&shard, 100);
}

static void a_list_whose_links_are_broken(void)
{
    struct list head, node;
    list_init(&head);
    list_push(&head, &node);
    head.next = &head;
    list_remove(&node);
}

/* ---- what is allowed ---- */

static void allowed(void)
{
    lock_take(&purge_like);
    lock_take(&cache_lock);
    EXPECT(lock_try(&other_cache_lock)); /* it waits for nobody */
    lock_take(&shard);
    EXPECT(lock_try(&other_shard) && !lock_try(&other_shard));
    EXPECT(lock_held(&shard) && lock_held(&other_shard) && !lock_held(&meta));
    lock_release(&shard);
    lock_take(&meta);
    lock_release(&cache_lock);
    lock_release(&other_shard);
    lock_release(&meta);
    lock_release(&other_cache_lock);
    lock_release(&purge_like);
    EXPECT(lock_none_held());
    EXPECT(lock_try_unguarded(&shard));
    lock_release(&shard);
}

/* Every cache_lock at once, in this process and in a child. */
static void whole_heap(void)
{
    void *p = hakmem_malloc(100);
    heap_lock_all();
    EXPECT(lock_all_held() && !lock_none_held());
    heap_unlock_all();
    pid_t child = fork();
    if (child == 0) {
        hakmem_free(p);
        EXPECT(hakmem_malloc(1000) != NULL);
        heap_lock_all();
        heap_unlock_all();
        _exit(!lock_rank_held(RANK_CACHE) ? 0 : 1);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT_EQUAL(status, 0);
    hakmem_free(p);
}

/* A thread's locks are not another's, and one that it left can be freed, as in a fork's child. */
static void left_behind(void)
{
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, take_cache_lock, NULL) == 0);
    pthread_join(thread, NULL);
    EXPECT(!lock_held(&cache_lock) && !lock_try(&cache_lock) && lock_none_held());
    lock_reset(&cache_lock);
    lock_take(&cache_lock);
    lock_release(&cache_lock);
}

int main(void)
{
    hakmem_free(hakmem_malloc(1)); /* the process's start */
    EXPECT_SAID(wrong_order, ORDER "shard (rank 7)", "holds: cache (rank 5), meta (rank 12)\n");
    EXPECT_SAID(wrong_order_entering, ORDER "purge (rank 2)", "holds: cache (rank 5)\n");
    EXPECT_SAID(the_same_rank, ORDER "shard (rank 7)", "holds: cache (rank 5), shard (rank 7)\n");
    EXPECT_SAID(the_same_lock, ORDER "cache (rank 5)", "holds: cache (rank 5)\n");
    EXPECT_SAID(two_cache_locks, ORDER "cache (rank 5)", "holds: cache (rank 5)\n");
    EXPECT_SAID(without_a_rank, "rank", "holds no lock\n");
    EXPECT_SAID(released_but_not_held, "who releases a lock holds it: cache (rank 5)",
                "holds no lock\n");
    EXPECT_SAID(anothers_lock_released, "who releases a lock holds it: cache (rank 5)",
                "holds no lock\n");
    EXPECT_SAID(inside_without_an_outer_lock, GUARD "shard (rank 7)", "holds no lock\n");
    EXPECT_SAID(tried_without_an_outer_lock, GUARD "journal (rank 13)", "holds no lock\n");
    EXPECT_SAID(metadata_without_an_outer_lock, GUARD "meta (rank 12)", "holds no lock\n");
    EXPECT_SAID(blocks_without_an_outer_lock, GUARD "shard (rank 7)", "holds no lock\n");
    EXPECT_SAID(purged_by_two, "slices_purge: assertion failed: lock_rank_held(RANK_PURGE)\n",
                "holds: cache (rank 5)\n");
    EXPECT_SAID(walk_without_locks, "meta_parts: assertion failed: lock_all_held()\n",
                "holds no lock\n");
    EXPECT_SAID(slices_given_twice,
                "slices_give: assertion failed: ", "holds: cache (rank 5), superslabs (rank 9)\n");
    EXPECT_SAID(no_metadata, "meta_give: assertion failed: meta_holds(p, bytes)",
                "holds: cache (rank 5)\n");
    EXPECT_SAID(a_list_whose_links_are_broken,
                "list_remove: assertion failed: ", "holds no lock\n");
    allowed();
    whole_heap();
    left_behind();
    whole_heap(); /* a fork locks, since there was another thread */
    puts("21 passed, 0 failed");
    return 0;
}
