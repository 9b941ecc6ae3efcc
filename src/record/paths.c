#include "record/paths.h"

#include "os/os.h"

/* Calls of a stack that are looked at to tell which call path it is. Of 0.27 million allocations of
 * g++ 4.0% count as of another path with 8 calls, 0.8% with 12 and 0.6% with 16; an event takes
 * 218, 240 and 254 instructions. */
#define PATH_WALK 12

/* One in this many call paths that are known is read from the stack all the same. */
#define PATH_LOOKS 1024

/* How much stack lies between a call in a function and its own caller's. */
#define STEPS_BITS 15
#define STEPS ((size_t)1 << STEPS_BITS)
#define STEP_VARIES 1u /* no stack has such a length: they are of whole words */
struct step {
    uint64_t code;   /* where the call returns to; 0: none; atomic */
    uint32_t length; /* 0: not known yet; atomic */
    uint32_t ours;   /* whether a function of hakmem calls there; atomic */
};

/* The length of a step that varies, for one place of a stack: a function that has taken stack as it
 * likes calls others again and again from there. By now the place may be another call's, and two
 * threads may each have written a part: so the return address must be where the step leads. All
 * atomic. */
#define LOCAL_STEPS ((size_t)1 << 12)
struct local_step {
    uint64_t code, stack, length;
    uint64_t next; /* where the function returns to */
};

/* Paths by a key: in each word its upper bits and the path, so that two threads can't each write a
 * part; 0: none. `by_stack` has each path, by all its addresses; more than half of its places are
 * always free. `by_walk` has what walks found (path_key): a path has a key for each amount of stack
 * in use, so it forgets. All atomic. */
#define NUMBERS ((unsigned)1 << EVENT_PATH_BITS)
#define FOUND_PATH ((uint64_t)(NUMBERS - 1))
#define BY_STACK ((size_t)2 * NUMBERS)
#define BY_WALK ((size_t)1 << 18)

/* For stacks with the same innermost call and equally much in use: the path that was found last,
 * and where on the stack its return addresses were. If the same addresses are there again, it is
 * the same path, and no walk is needed. Two threads may each have written a part of a shape: so the
 * path is in one word with the upper bits of its key, and no place beyond the stack is read. All
 * atomic. */
#define SHAPES_BITS 14
#define SHAPES ((size_t)1 << SHAPES_BITS)
#define SHAPE_STEPS 4
#define SHAPE_WORDS (PATH_WALK / SHAPE_STEPS)
struct shape {
    uint64_t code;            /* where the innermost call returns to; 0: none */
    uint64_t found;           /* the upper bits of its key, and its number */
    uint64_t depth;           /* bytes of the stack in use */
    uint64_t at[SHAPE_WORDS]; /* SHAPE_STEPS places of 16 bits each: words from the stack's end */
    uint32_t changes, unused[3]; /* of `steps` when it was written */
};
static_assert(PATH_WALK % SHAPE_STEPS == 0, "shapes have all that a walk finds");
static_assert(sizeof(struct shape) == CACHE_LINE, "one access");

#define TRIES 8        /* places of a table that are looked at */
#define FRAMES_OUTER 8 /* calls of a stack that is not kept whole */

/* In one mapping; what was learned of stacks, which paths_read_anew forgets, comes first. */
static struct tables {
    struct step steps[STEPS];
    uint64_t by_walk[BY_WALK];
    struct local_step local_steps[LOCAL_STEPS];
    uint64_t by_stack[BY_STACK];
    struct shape shapes[SHAPES];
} * tables;
static_assert(offsetof(struct tables, by_stack) % (64 * KiB) == 0, "whole pages");

static unsigned numbers; /* given to paths; atomic */
static unsigned generation = 1;
static uint32_t changes; /* counts steps that are learned to vary; atomic */

COLD bool paths_start(void)
{
    if (tables == NULL)
        tables = os_map(sizeof *tables);
    return tables != NULL;
}

COLD void paths_forget(void)
{
    if (tables != NULL)
        os_purge(tables, sizeof *tables);
    store_relaxed(&numbers, 0);
    generation++;
}

COLD void paths_read_anew(void)
{
    os_purge(tables, offsetof(struct tables, by_stack));
    add_relaxed(&changes, 1);
}

unsigned paths_generation(void) { return generation; }

FAST uint64_t hashed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * MIXED_STEP;
    return hash ^ hash >> 32;
}

FAST size_t step_place(uintptr_t code) { return (size_t)(code * MIXED_STEP >> (64 - STEPS_BITS)); }

static SLOW const struct step *step_search(uintptr_t code)
{
    for (unsigned i = 1; i < TRIES; i++) {
        const struct step *step = &tables->steps[(step_place(code) + i) % STEPS];
        uint64_t there = load_relaxed(&step->code);
        if (there == code)
            return step;
        if (there == 0)
            return NULL;
    }
    return NULL;
}

FAST const struct step *step_of(uintptr_t code)
{
    const struct step *step = &tables->steps[step_place(code)];
    return likely(load_relaxed(&step->code) == code) ? step : step_search(code);
}

/* The addresses on a stack that tell its path, and how many words from its end they are. Where a
 * walk ends early, the last of them again and again. */
struct walked {
    unsigned count;
    uintptr_t codes[PATH_WALK];
    size_t at[PATH_WALK];
};

static const uint64_t factors[] = {
    /* odd, by chance */
    0xfb71fda806642925, 0xe8d9880d920dd7a9, 0x8faf316e13d7bd0d, 0xe3a1fccdb56f6367,
    0xdd6817aa3bddfa99, 0xec6359bbb0e316b1, 0xe06aaff552f8420d, 0xa3ab666046e63987,
    0xb2a039658581e6f7, 0xfa1f8ef316682707, 0x81ba0dc77c782907, 0xeb3cf5f6738fb95b,
    0x80a79f491c6420e3,
};
static_assert(sizeof factors / sizeof *factors == PATH_WALK + 1, "one each");

FAST uint64_t key_begin(uintptr_t code, size_t depth)
{
    return code * MIXED_STEP + depth * factors[PATH_WALK];
}

FAST uint64_t key_end(uint64_t sum)
{
    uint64_t key = (sum ^ sum >> 32) * MIXED_STEP;
    return key ^ key >> 29;
}

/* What is read lies on the part of the stack that was seen in use by the same thread. */
static uint64_t path_key(const struct tape *tape, struct caller from, struct walked *walked)
{
    uintptr_t code = (uintptr_t)from.code;
    uintptr_t stack = from.stack;
    size_t at = 0;
    unsigned i = 0;
    for (; RETURNS_ARE_ON_STACK && i < PATH_WALK; i++) {
        const struct step *step = step_of(code);
        uint32_t length = step != NULL ? load_relaxed(&step->length) : 0;
        if (unlikely(length <= STEP_VARIES) || unlikely(length > tape->stack_top - stack))
            break;
        stack += length;
        at += length / sizeof(uintptr_t);
        code = ((const uintptr_t *)stack)[-1];
        walked->codes[i] = code;
        walked->at[i] = at;
    }
    walked->count = i;
    for (; i < PATH_WALK; i++) {
        walked->codes[i] = walked->count > 0 ? code : 0;
        walked->at[i] = at;
    }
    uint64_t sum = key_begin((uintptr_t)from.code, tape->stack_top - from.stack);
    for (i = 0; i < PATH_WALK; i++)
        sum += walked->codes[i] * factors[i];
    return key_end(sum);
}

FAST uint64_t found_of(uint64_t key, unsigned path) { return (key & ~FOUND_PATH) | path; }

FAST bool is_of(uint64_t found, uint64_t key) { return ((found ^ key) & ~FOUND_PATH) == 0; }

FAST struct shape *shape_of(uintptr_t code, size_t depth)
{
    return &tables->shapes[(code ^ depth << 12) * MIXED_STEP >> (64 - SHAPES_BITS)];
}

static void shape_enter(struct caller from, size_t depth, const struct walked *walked, uint64_t key,
                        unsigned path)
{
    if (walked->count == 0 || walked->at[PATH_WALK - 1] > UINT16_MAX)
        return;
    struct shape *shape = shape_of((uintptr_t)from.code, depth);
    store_relaxed(&shape->code, (uint64_t)(uintptr_t)from.code);
    store_relaxed(&shape->depth, (uint64_t)depth);
    store_relaxed(&shape->changes, load_relaxed(&changes));
    for (unsigned i = 0; i < SHAPE_WORDS; i++) {
        uint64_t word = 0;
        for (unsigned k = 0; k < SHAPE_STEPS; k++)
            word |= (uint64_t)walked->at[i * SHAPE_STEPS + k] << 16 * k;
        store_relaxed(&shape->at[i], word);
    }
    store_relaxed(&shape->found, found_of(key, path));
}

/* The path, or 0. */
FAST unsigned shape_find(struct caller from, size_t depth)
{
    const struct shape *shape = shape_of((uintptr_t)from.code, depth);
    if (unlikely(load_relaxed(&shape->code) != (uintptr_t)from.code) ||
        unlikely(load_relaxed(&shape->depth) != depth) ||
        unlikely(load_relaxed(&shape->changes) != load_relaxed(&changes)))
        return 0;
    const uintptr_t *words = (const uintptr_t *)from.stack;
    uint64_t sum = key_begin((uintptr_t)from.code, depth);
    for (unsigned i = 0; i < SHAPE_WORDS; i++) {
        uint64_t at = load_relaxed(&shape->at[i]);
        if (unlikely((at >> 48) * sizeof(uintptr_t) > depth))
            return 0;
        for (unsigned k = 0; k < SHAPE_STEPS; k++)
            sum += words[(ptrdiff_t)(at >> 16 * k & 0xffff) - 1] * factors[i * SHAPE_STEPS + k];
    }
    uint64_t found = load_relaxed(&shape->found);
    return likely(is_of(found, key_end(sum))) ? (unsigned)(found & FOUND_PATH) : 0;
}

/* The path, or 0. */
static unsigned walk_find(uint64_t key)
{
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t found = load_relaxed(&tables->by_walk[(key + i) % BY_WALK]);
        if (found == 0)
            return 0;
        if (is_of(found, key))
            return (unsigned)(found & FOUND_PATH);
    }
    return 0;
}

/* In place of what was learned of the key, or of another key where all places are taken. */
static void walk_enter(uint64_t key, unsigned path)
{
    uint64_t *place = &tables->by_walk[key % BY_WALK];
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t *one = &tables->by_walk[(key + i) % BY_WALK];
        uint64_t found = load_relaxed(one);
        if (found == 0 || is_of(found, key)) {
            place = one;
            break;
        }
    }
    store_relaxed(place, found_of(key, path));
}

static struct local_step *local_step_at(uintptr_t code, uintptr_t stack)
{
    return &tables->local_steps[hashed(code, stack) >> 20 & (LOCAL_STEPS - 1)];
}

static void local_step_learn(uintptr_t code, uintptr_t stack, uintptr_t length)
{
    struct local_step *local = local_step_at(code, stack);
    store_relaxed(&local->code, (uint64_t)code);
    store_relaxed(&local->stack, (uint64_t)stack);
    store_relaxed(&local->length, (uint64_t)length);
    store_relaxed(&local->next, (uint64_t)((const uintptr_t *)(stack + length))[-1]);
}

/* 0: not known. */
static uintptr_t local_step_length(const struct tape *tape, uintptr_t code, uintptr_t stack)
{
    const struct local_step *local = local_step_at(code, stack);
    uintptr_t length = load_relaxed(&local->length);
    bool is_it = load_relaxed(&local->code) == code && load_relaxed(&local->stack) == stack &&
                 length % sizeof(uintptr_t) == 0 && length <= tape->stack_top - stack &&
                 length >= sizeof(uintptr_t);
    return is_it && ((const uintptr_t *)(stack + length))[-1] == load_relaxed(&local->next) ? length
                                                                                            : 0;
}

static bool is_seen(const struct tape *tape, uintptr_t stack)
{
    return stack - tape->stack_low < tape->stack_top - tape->stack_low;
}

bool path_to_check(const struct tape *tape) { return tape->looked % PATH_LOOKS == 0; }

static SLOW bool path_walk(struct tape *tape, struct caller from, unsigned *path)
{
    struct walked walked;
    uint64_t key = path_key(tape, from, &walked);
    *path = walk_find(key);
    if (*path == 0)
        return false;
    shape_enter(from, tape->stack_top - from.stack, &walked, key, *path);
    return true;
}

bool path_known(struct tape *tape, struct caller from, unsigned *path)
{
    ++tape->looked;
    if (unlikely(!is_seen(tape, from.stack)) || unlikely(path_to_check(tape)))
        return false;
    *path = RETURNS_ARE_ON_STACK ? shape_find(from, tape->stack_top - from.stack) : 0;
    return likely(*path != 0) || path_walk(tape, from, path);
}

bool stack_walk(const struct tape *tape, struct caller from, uintptr_t *frames, uintptr_t *stacks,
                unsigned most, unsigned *count)
{
    uintptr_t code = (uintptr_t)from.code;
    uintptr_t stack = from.stack;
    *count = 0;
    if (!RETURNS_ARE_ON_STACK || !is_seen(tape, stack))
        return false;
    while (*count < most) {
        const struct step *step = step_of(code);
        if (step == NULL || load_relaxed(&step->ours) == 0) {
            frames[*count] = code - 1;
            stacks[(*count)++] = stack;
        }
        if (stack == tape->stack_top)
            return true;
        uintptr_t length = step != NULL ? load_relaxed(&step->length) : 0;
        if (length == STEP_VARIES)
            length = local_step_length(tape, code, stack);
        if (length == 0 || length > tape->stack_top - stack)
            return false;
        stack += length;
        code = ((const uintptr_t *)stack)[-1];
    }
    return true;
}

/* False where it varies. */
static bool step_learn(uintptr_t code, uintptr_t length, bool ours)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct step *step = &tables->steps[(step_place(code) + i) % STEPS];
        uint64_t there = load_relaxed(&step->code);
        if (there == 0)
            __atomic_compare_exchange_n(&step->code, &there, code, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        if (there != 0 && there != code)
            continue;
        uint32_t before = load_relaxed(&step->length);
        bool fits = length <= UINT32_MAX && (before == 0 || before == length);
        if (!fits && before > STEP_VARIES)
            add_relaxed(&changes, 1);
        store_relaxed(&step->length, fits ? (uint32_t)length : STEP_VARIES);
        store_relaxed(&step->ours, ours);
        return fits;
    }
    return true;
}

/* Only where the address that the unwinder found lies where path_key would look for it. */
static void steps_learn(const struct stack_read *stack)
{
    for (unsigned i = 0; RETURNS_ARE_ON_STACK && i + 1 < stack->count && i < stack->unwound; i++) {
        uintptr_t next = stack->stacks[i + 1];
        uintptr_t length = next - stack->stacks[i];
        bool right = next > stack->stacks[i] && length % sizeof(uintptr_t) == 0 &&
                     ((const uintptr_t *)next)[-1] == stack->frames[i + 1] + 1;
        uintptr_t code = stack->frames[i] + 1;
        if (!step_learn(code, right ? length : STEP_VARIES, false) && right)
            local_step_learn(code, stack->stacks[i], length);
    }
}

/* How much may lie between two calls of one stack. */
#define STEP_MOST ((uintptr_t)1 << 20)

/* Another outermost call says that it is another stack; but not where this one was not read to its
 * end. A stack that ends further in may be so: code without unwind information was met. It counts
 * as another one only when a known path is read again. */
static void range_learn(struct tape *tape, uintptr_t low, const struct stack_read *stack,
                        bool whole)
{
    uintptr_t top = low;
    for (unsigned i = 0; i < stack->count; i++) {
        uintptr_t next = stack->stacks[i];
        if (next < top || next - top > STEP_MOST)
            break; /* an alternate stack of a signal handler, say */
        top = next;
    }
    bool within = low < tape->stack_top && top >= tape->stack_low;
    bool other = whole && (top > tape->stack_top || (top < tape->stack_top && path_to_check(tape)));
    bool same = within && !other;
    tape->stack_low = same && tape->stack_low < low ? tape->stack_low : low;
    tape->stack_top = same && tape->stack_top > top ? tape->stack_top : top;
}

static unsigned number_new(void)
{
    if (load_relaxed(&numbers) >= NUMBERS - 1)
        return PATH_NONE;
    unsigned number = add_relaxed(&numbers, 1);
    return number < NUMBERS ? number : PATH_NONE;
}

static uint64_t stack_key(const struct stack_read *stack, const struct stack_kept *kept)
{
    uint64_t key = stack->modules + (kept->whole ? 2 : 3);
    for (unsigned i = 0; i < kept->inner; i++)
        key = hashed(key, stack->frames[i]);
    for (unsigned i = stack->count - kept->outer; i < stack->count; i++)
        key = hashed(key, stack->frames[i]);
    return key;
}

/* The path, or 0. */
static unsigned stack_find(uint64_t key)
{
    for (size_t i = 0;; i++) {
        uint64_t found = load_relaxed(&tables->by_stack[(key + i) % BY_STACK]);
        if (found == 0)
            return 0;
        if (is_of(found, key))
            return (unsigned)(found & FOUND_PATH);
    }
}

/* A number for a path that has none; another thread may just have given it one. PATH_NONE: there is
 * none left. */
static unsigned stack_enter(uint64_t key, bool *is_new)
{
    unsigned path = number_new();
    for (size_t i = 0; path != PATH_NONE; i++) {
        uint64_t found = 0;
        *is_new = __atomic_compare_exchange_n(&tables->by_stack[(key + i) % BY_STACK], &found,
                                              found_of(key, path), false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED);
        if (*is_new)
            break;
        if (is_of(found, key))
            return (unsigned)(found & FOUND_PATH);
    }
    return path;
}

/* Deep recursion makes more paths than there are numbers. So the fewer numbers are left, the fewer
 * calls tell a new path from others. Of 10 million allocations of g++ 63% have a path with all
 * calls then; where only innermost calls were kept, a tenth had. */
static struct stack_kept stack_cut(unsigned count)
{
    unsigned used = load_relaxed(&numbers);
    unsigned most = used < NUMBERS / 2       ? FRAMES_READ
                    : used < NUMBERS / 4 * 3 ? 24
                    : used < NUMBERS / 8 * 7 ? 12
                                             : 6;
    unsigned outer = count < FRAMES_READ ? FRAMES_OUTER : 0;
    if (count <= most + outer)
        return (struct stack_kept){count, 0, count < FRAMES_READ};
    return (struct stack_kept){most, outer, false};
}

static unsigned stack_number(const struct stack_read *stack, struct stack_kept *kept, bool *is_new)
{
    *kept = (struct stack_kept){stack->count, 0, stack->count < FRAMES_READ};
    uint64_t key = stack_key(stack, kept);
    unsigned path = stack_find(key);
    if (path != 0)
        return path;
    *kept = stack_cut(stack->count);
    key = stack_key(stack, kept);
    path = stack_find(key);
    return path != 0 ? path : stack_enter(key, is_new);
}

unsigned path_enter(struct tape *tape, struct caller from, const struct stack_read *stack,
                    struct stack_kept *kept, bool *is_new)
{
    *is_new = false;
    if (stack->count == 0)
        return PATH_NONE;
    range_learn(tape, from.stack, stack, stack->count < FRAMES_READ);
    if (stack->unwound > 0 &&
        from.code != (const void *)(stack->frames[0] + 1)) /* of ours, between */
        step_learn((uintptr_t)from.code, stack->stacks[0] - from.stack, true);
    steps_learn(stack);
    unsigned path = stack_number(stack, kept, is_new);
    if (path == PATH_NONE)
        return PATH_NONE;
    struct walked walked;
    uint64_t key = path_key(tape, from, &walked);
    walk_enter(key, path);
    shape_enter(from, tape->stack_top - from.stack, &walked, key, path);
    return path;
}

unsigned path_with(unsigned path, uint64_t more, bool *is_new)
{
    *is_new = false;
    uint64_t key = hashed(hashed(4, path), more);
    unsigned joined = stack_find(key);
    if (joined == 0 &&
        load_relaxed(&numbers) < NUMBERS / 4 * 3) /* the others are for paths alone */
        joined = stack_enter(key, is_new);
    return joined != PATH_NONE ? joined : path;
}
