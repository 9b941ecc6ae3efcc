#include "profile/samples.h"

#include "back/meta.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "base/policy.h"
#include "base/text.h"
#include "os/lock.h"
#include "os/os.h"
#include "profile/noted.h"
#include "profile/python.h"
#include "profile/rate.h"

#define BUCKET_BITS_FIRST 14 /* of samples */
#define BUCKET_BITS_MOST 26
#define SITE_BUCKETS 4096
#define SITE_BUCKETS_OF_EVERY 65536 /* where every block is a sample, as are more of these */
#define SITES_OF_BUCKET 16
#define SAMPLES_MOST ((size_t)1 << 20)
#define SAMPLES_MOST_OF_EVERY ((size_t)1 << 28)

struct sample {
    struct sample *next; /* of its bucket, or free */
    const void *p;       /* null while it is unused: who reads from outside has to know */
    struct site *site;
    size_t bytes, block; /* requested, and of the block */
    double weight;
};

bool profile_used;

static struct {
    struct lock lock;
    struct sample **samples; /* buckets */
    struct site **sites;     /* the same; buckets are atomic: they grow at the front */
    struct sample *unused;
    struct site *others; /* without a stack: of all sites that find no room */
    struct site *own;    /* of blocks that are no part of the program; has no total */
    size_t sample_count, site_count, lost, bytes;
    size_t bucket_bits;   /* of samples */
    size_t site_buckets;  /* constant once they are there */
    struct fill fill;     /* of all sites; `requested` is what they have in use */
    double live;          /* bytes that the program has in use; atomic */
    struct course course; /* since the process began */
    struct course lately; /* since samples_watch */
    bool watched;         /* there was one; atomic */
    bool ends;            /* the tallies of what is in use stay as they are */
} profile = {.lock = LOCK(PROFILE)};

static bool every_block(void) { return load_relaxed(&policy.profile_rate) <= RATE_EVERY; }

/* For ever. */
static void *take_pages(size_t bytes)
{
    bytes = round_up(bytes, os_page);
    void *p = meta_take_pages(bytes);
    if (p != NULL)
        store_relaxed(&profile.bytes, profile.bytes + bytes);
    return p;
}

/* ---- sites ---- */

static uint64_t hash_of(const struct origin *from, size_t name_bytes)
{
    uint64_t hash = bytes_hash(0, from->frames, from->depth * sizeof *from->frames);
    return bytes_hash(hash, from->name, name_bytes);
}

static struct site *site_make(uint64_t hash, const struct origin *from, size_t name_bytes)
{
    size_t frames_bytes = from->depth * sizeof *from->frames;
    size_t bytes = sizeof(struct site) + frames_bytes + name_bytes + 1;
    struct site *site =
        profile.site_count < SITES_OF_BUCKET * profile.site_buckets ? meta_take(bytes) : NULL;
    if (site == NULL)
        return NULL;
    store_relaxed(&profile.bytes, profile.bytes + meta_size(bytes));
    profile.site_count++;
    words_clear(site, round_up(bytes, 8));
    site->hash = hash;
    site->since = from->since;
    site->depth = from->depth;
    site->name_bytes = name_bytes;
    words_move(site->frames, from->frames, from->depth);
    bytes_copy((char *)&site->frames[from->depth], from->name, name_bytes);
    struct site **bucket = &profile.sites[hash % profile.site_buckets];
    site->next = *bucket;
    store_release(bucket, site);
    return site;
}

static bool site_is(const struct site *site, const struct origin *from, size_t name_bytes)
{
    return site->depth == from->depth && site->name_bytes == name_bytes &&
           words_same(site->frames, from->frames, from->depth) &&
           text_begins(from->name, site_name(site), name_bytes);
}

static struct site *site_of(const struct origin *from)
{
    ASSERT(lock_held(&profile.lock));
    size_t name_bytes = smaller(text_length(from->name), SITE_NAME_MOST);
    uint64_t hash = hash_of(from, name_bytes);
    for (struct site *site = profile.sites[hash % profile.site_buckets]; site != NULL;
         site = site->next)
        if (site->hash == hash && site_is(site, from, name_bytes))
            return site;
    struct site *site = site_make(hash, from, name_bytes);
    return site != NULL ? site : profile.others;
}

#define HASH_OWN 1 /* that of no stack is 0 */

static bool others_make(void)
{
    static const struct origin unknown = {.name = ""};
    profile.others = site_of(&unknown);
    profile.own = site_make(HASH_OWN, &unknown, 0);
    return profile.others != NULL && profile.own != NULL;
}

bool samples_start(void)
{
    lock_take(&profile.lock);
    if (profile.samples == NULL) {
        profile.samples = take_pages(((size_t)1 << BUCKET_BITS_FIRST) * sizeof(void *));
        profile.bucket_bits = BUCKET_BITS_FIRST;
    }
    if (profile.samples != NULL && profile.sites == NULL) {
        profile.site_buckets = every_block() ? SITE_BUCKETS_OF_EVERY : SITE_BUCKETS;
        profile.sites = take_pages(profile.site_buckets * sizeof(void *));
    }
    bool done = profile.sites != NULL && (profile.others != NULL || others_make());
    lock_release(&profile.lock);
    return done;
}

/* Of a number that is read without the lock. */
#define NUMBER_SET(number, to) __atomic_store(&(number), &(double){to}, __ATOMIC_RELAXED)

static void tally_set(struct tally *tally, struct tally now)
{
    words_copy_shared(tally, &now, sizeof now / sizeof(uint64_t));
}

/* What a block of so many bytes adds. */
static double variance(double weight, size_t bytes)
{
    return weight * (weight - 1) * (double)bytes * (double)bytes;
}

static void tally_add(struct tally *tally, double weight, size_t bytes)
{
    tally_set(tally, (struct tally){tally->samples + 1, tally->blocks + weight,
                                    tally->bytes + weight * (double)bytes,
                                    tally->variance + variance(weight, bytes)});
}

static void tally_resize(struct tally *tally, double weight, size_t from, size_t to)
{
    double bytes = weight * ((double)to - (double)from);
    double more = variance(weight, to) - variance(weight, from);
    tally_set(tally, (struct tally){tally->samples, tally->blocks, tally->bytes + bytes,
                                    tally->variance + more});
}

static void tally_remove(struct tally *tally, double weight, size_t bytes)
{
    struct tally now = {tally->samples - 1, tally->blocks - weight,
                        tally->bytes - weight * (double)bytes,
                        tally->variance - variance(weight, bytes)};
    tally_set(tally, now.samples > 0 ? now : (struct tally){0}); /* nothing that rounding left */
}

static void fill_change(const struct sample *sample, double sign)
{
    struct fill *fill = &profile.fill;
    double w = sign * sample->weight, ww = w * (sample->weight - 1);
    double n = (double)sample->bytes, b = (double)sample->block;
    fill->requested += w * n;
    fill->blocks += w * b;
    fill->nn += ww * n * n;
    fill->nb += ww * n * b;
    fill->bb += ww * b * b;
}

static void fill_add(const struct sample *sample)
{
    profile.fill.samples++;
    fill_change(sample, 1);
}

static void fill_remove(const struct sample *sample)
{
    if (--profile.fill.samples == 0) {
        profile.fill = (struct fill){0}; /* what rounding left */
        NUMBER_SET(profile.live, 0);
    } else {
        fill_change(sample, -1);
    }
}

const struct site *samples_site_after(const struct site *site)
{
    if (profile.sites == NULL)
        return NULL;
    if (site != NULL && site->next != NULL)
        return site->next;
    for (size_t i = site == NULL ? 0 : site->hash % profile.site_buckets + 1;
         i < profile.site_buckets; i++) {
        const struct site *first = load_acquire(&profile.sites[i]);
        if (first != NULL)
            return first;
    }
    return NULL;
}

/* ---- peak ---- */

/* Of each site, each time that the peak has grown by a part: it costs a walk over all sites. */
#define PEAK_PART 64

static void note_tallies(struct course *course, size_t tally_at)
{
    NUMBER_SET(course->snapped, profile.live);
    for (const struct site *site = NULL; (site = samples_site_after(site)) != NULL;)
        tally_set((struct tally *)((char *)site + tally_at), site->live);
}

static void note_peak_of(struct course *course, size_t tally_at)
{
    if (profile.live > course->most)
        NUMBER_SET(course->most, profile.live);
    if (unlikely(profile.live > course->snapped * (1 + 1.0 / PEAK_PART)) && !profile.ends)
        note_tallies(course, tally_at);
}

static void course_begin(struct course *course, size_t tally_at)
{
    NUMBER_SET(course->most, profile.live);
    NUMBER_SET(course->blocks, 0);
    store_relaxed(&course->missed, 0);
    note_tallies(course, tally_at);
}

/* Before something is freed. */
static void note_peak(void)
{
    ASSERT(lock_held(&profile.lock));
    note_peak_of(&profile.course, offsetof(struct site, peak));
    if (profile.watched)
        note_peak_of(&profile.lately, offsetof(struct site, lately));
}

COLD void samples_miss(void)
{
    add_relaxed(&profile.course.missed, 1);
    add_relaxed(&profile.lately.missed, 1);
}

void samples_watch(void)
{
    lock_take(&profile.lock);
    course_begin(&profile.lately, offsetof(struct site, lately));
    store_relaxed(&profile.watched, true);
    lock_release(&profile.lock);
}

void samples_fork_child(void)
{
    course_begin(&profile.course, offsetof(struct site, peak));
    course_begin(&profile.lately, offsetof(struct site, lately));
}

bool samples_watched(void) { return load_relaxed(&profile.watched); }

/* Bytes in use now: an estimate. */
static double samples_in_use(void)
{
    double bytes;
    __atomic_load(&profile.live, &bytes, __ATOMIC_RELAXED);
    return bytes;
}

/* Without a lock: a signal handler may ask, and each number was right at some time. */
struct course samples_course(void)
{
    struct course copy;
    words_copy_shared(&copy, samples_watched() ? &profile.lately : &profile.course,
                      sizeof copy / sizeof(uint64_t));
    return copy;
}

static void count_blocks(double weight)
{
    NUMBER_SET(profile.course.blocks, profile.course.blocks + weight);
    NUMBER_SET(profile.lately.blocks, profile.lately.blocks + weight);
}

/* ---- samples ---- */

static struct sample **bucket_of(const void *p)
{
    return &profile.samples[((uintptr_t)p >> 4) * MIXED_STEP >> (64 - profile.bucket_bits)];
}

/* Four times the buckets, where there are many samples and memory for it. The old ones stay unused,
 * a third of all at most. */
static void buckets_grow(void)
{
    ASSERT(lock_held(&profile.lock));
    size_t before = (size_t)1 << profile.bucket_bits;
    if (likely(profile.sample_count < 2 * before) || profile.bucket_bits >= BUCKET_BITS_MOST)
        return;
    struct sample **old = profile.samples;
    struct sample **more = take_pages(4 * before * sizeof(void *));
    if (more == NULL)
        return;
    profile.samples = more;
    profile.bucket_bits += 2;
    for (size_t i = 0; i < before; i++)
        for (struct sample *sample = old[i], *next; sample != NULL; sample = next) {
            struct sample **bucket = bucket_of(sample->p);
            next = sample->next;
            sample->next = *bucket;
            *bucket = sample;
        }
}

static size_t samples_most(void) { return every_block() ? SAMPLES_MOST_OF_EVERY : SAMPLES_MOST; }

static struct sample *sample_take(void)
{
    ASSERT(lock_held(&profile.lock));
    if (profile.unused == NULL && profile.sample_count < samples_most()) {
        struct sample *more = take_pages(os_page);
        for (size_t i = 0; more != NULL && i < os_page / sizeof *more; i++) {
            more[i].next = profile.unused;
            profile.unused = &more[i];
        }
    }
    struct sample *sample = profile.unused;
    if (sample != NULL) {
        profile.unused = sample->next;
        profile.sample_count++;
    }
    return sample;
}

bool samples_add(const void *p, size_t n, size_t block, double weight, const struct origin *from)
{
    lock_take(&profile.lock);
    struct site *site = from != NULL ? site_of(from) : profile.own;
    struct sample *sample = site != NULL ? sample_take() : NULL;
    if (sample != NULL) {
        buckets_grow();
        struct sample **bucket = bucket_of(p);
        *sample = (struct sample){*bucket, p, site, n, block, weight};
        *bucket = sample;
        if (site != profile.own) {
            tally_add(&site->total, weight, n);
            count_blocks(weight);
        }
        if (site != profile.own)
            NUMBER_SET(profile.live, profile.live + weight * (double)n);
        if (!profile.ends)
            tally_add(&site->live, weight, n);
        fill_add(sample);
        store_relaxed(&profile_used, true);
    } else {
        store_relaxed(&profile.lost, profile.lost + 1);
    }
    lock_release(&profile.lock);
    if (sample != NULL)
        PROBE3("otel_memory", "alloc", p, n, (uint64_t)(weight * (double)n + 0.5));
    return sample != NULL;
}

static struct sample **sample_at(const void *p)
{
    ASSERT(lock_held(&profile.lock));
    struct sample **at = bucket_of(p);
    while (*at != NULL && (*at)->p != p)
        at = &(*at)->next;
    return at;
}

/* Of what was allocated it is what the block grew by, and no block more. */
void samples_resize(const void *p, size_t n, size_t block)
{
    lock_take(&profile.lock);
    struct sample *sample = *sample_at(p);
    if (sample != NULL) {
        double change = sample->weight * ((double)n - (double)sample->bytes);
        note_peak();
        if (sample->site != profile.own)
            NUMBER_SET(profile.live, profile.live + change);
        if (!profile.ends)
            tally_resize(&sample->site->live, sample->weight, sample->bytes, n);
        if (n > sample->bytes)
            tally_resize(&sample->site->total, sample->weight, sample->bytes, n);
        fill_change(sample, -1);
        sample->bytes = n;
        sample->block = larger(sample->block, block);
        fill_change(sample, 1);
    }
    lock_release(&profile.lock);
}

bool samples_forget(const void *p)
{
    bool ends = python_ends();
    lock_take(&profile.lock);
    profile.ends |= ends;
    struct sample **at = sample_at(p);
    struct sample *sample = *at;
    if (sample != NULL) {
        note_peak();
        if (sample->site != profile.own)
            NUMBER_SET(profile.live, profile.live - sample->weight * (double)sample->bytes);
        if (!profile.ends)
            tally_remove(&sample->site->live, sample->weight, sample->bytes);
        fill_remove(sample);
        *at = sample->next;
        sample->p = NULL;
        sample->next = profile.unused;
        profile.unused = sample;
        profile.sample_count--;
    }
    lock_release(&profile.lock);
    if (sample != NULL)
        PROBE1("otel_memory", "free", p);
    return sample != NULL;
}

void samples_end(void)
{
    lock_take(&profile.lock);
    profile.ends = true;
    lock_release(&profile.lock);
}

const struct site *samples_site_of(const void *p)
{
    if (!lock_try(&profile.lock))
        return NULL;
    const struct sample *sample = profile.samples != NULL ? *sample_at(p) : NULL;
    const struct site *site = sample != NULL ? sample->site : NULL;
    lock_release(&profile.lock);
    return site;
}

size_t samples_lost(void) { return load_relaxed(&profile.lost); }
size_t samples_bytes(void) { return load_relaxed(&profile.bytes) + noted_bytes(); }

/* ---- marks ---- */

static struct watch_mark marks[MARKS_MOST];

static bool has_name(const struct watch_mark *mark, const char *name)
{
    unsigned i = 0;
    for (; i < MARK_NAME - 1 && name[i] != '\0'; i++)
        if (mark->name[i] != name[i])
            return false;
    return mark->name[i] == '\0';
}

COLD void mark_count(const char *name)
{
    unsigned place = 0;
    while (place < MARKS_MOST && marks[place].count > 0 && !has_name(&marks[place], name))
        place++;
    if (place == MARKS_MOST)
        return;
    struct watch_mark *mark = &marks[place];
    for (unsigned i = 0; mark->count == 0 && i < MARK_NAME - 1 && name[i] != '\0'; i++)
        mark->name[i] = name[i];
    double in_use = samples_in_use();
    store_relaxed(&mark->time, os_nanoseconds());
    __atomic_store(&mark->in_use, &in_use, __ATOMIC_RELAXED);
    store_release(&mark->count, mark->count + 1);
}

bool mark_read(unsigned place, struct watch_mark *copy)
{
    if (place >= MARKS_MOST)
        return false;
    const struct watch_mark *mark = &marks[place];
    uint64_t count = load_acquire(&mark->count);
    if (count == 0)
        return false;
    copy->count = count;
    copy->time = load_relaxed(&mark->time);
    __atomic_load(&mark->in_use, &copy->in_use, __ATOMIC_RELAXED);
    bytes_copy(copy->name, mark->name, MARK_NAME);
    return true;
}

/* ---- for who looks from outside ---- */

const struct watch_marks watch_marks = {
    .bytes = sizeof watch_marks,
    .most = MARKS_MOST,
    .marks = marks,
};

const struct watch_profile watch_profile = {
    .bytes = sizeof watch_profile,
    .buckets = SITE_BUCKETS,
    .size = sizeof(struct site),
    .next_at = offsetof(struct site, next),
    .total_at = offsetof(struct site, total),
    .live_at = offsetof(struct site, live),
    .peak_at = offsetof(struct site, peak),
    .depth_at = offsetof(struct site, depth),
    .sites = &profile.sites,
    .rate = &policy.profile_rate,
    .lost = &profile.lost,
    .memory = &profile.bytes,
    .name_at = offsetof(struct site, name_bytes),
    .sample_size = sizeof(struct sample),
    .sample_next_at = offsetof(struct sample, next),
    .sample_p_at = offsetof(struct sample, p),
    .sample_site_at = offsetof(struct sample, site),
    .sample_requested_at = offsetof(struct sample, bytes),
    .sample_block_at = offsetof(struct sample, block),
    .sample_weight_at = offsetof(struct sample, weight),
    .fill = &profile.fill,
    .samples = &profile.samples,
    .bucket_bits = &profile.bucket_bits,
    .site_buckets = &profile.site_buckets,
    .lines = &script_lines_first,
    .line_size = offsetof(struct script_line, names),
    .line_next_at = offsetof(struct script_line, next),
    .line_address_at = offsetof(struct script_line, address),
    .line_number_at = offsetof(struct script_line, line),
    .line_function_at = offsetof(struct script_line, function_bytes),
    .line_file_at = offsetof(struct script_line, file_bytes),
    .course = &profile.course,
    .modules = &modules_last,
    .since_at = offsetof(struct site, since),
    .module_size = offsetof(struct seen_module, lines),
    .module_next_at = offsetof(struct seen_module, next),
    .module_bytes_at = offsetof(struct seen_module, bytes),
    .tally_bytes = sizeof(struct tally),
};
