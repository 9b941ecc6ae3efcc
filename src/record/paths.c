#include "record/paths.h"

#include "learn/laws.h"
#include "os/os.h"

/* How much stack lies between a call in a function and its own caller's. */
#define STEPS_BITS 15
#define STEPS ((size_t)1 << STEPS_BITS)
#define STEP_VARIES 1u /* no stack has such a length: they are of whole words */
struct step {
    uint64_t code;   /* where the call returns to; 0: none; atomic */
    uint32_t length; /* 0: not known yet; atomic */
    uint32_t ours;   /* whether a function of hakmem calls there; atomic */
};

/* Paths by what tells them from others: by a walk (path_key), or by all addresses. */
#define PATHS ((size_t)1 << 18)
#define NUMBERS ((unsigned)1 << EVENT_PATH_BITS)
struct known {
    uint64_t key;  /* 0: none; atomic */
    uint32_t path; /* 0: not known yet; atomic */
};

#define TRIES 8 /* places of a table that are looked at */

static struct step *steps;
static struct known *known;
static unsigned numbers; /* given to paths; atomic */

#define STEPS_BYTES (STEPS * sizeof(struct step))
#define KNOWN_BYTES (PATHS * sizeof(struct known))

COLD bool paths_start(void)
{
    if (steps == NULL)
        steps = os_map(STEPS_BYTES);
    if (known == NULL)
        known = os_map(KNOWN_BYTES);
    return steps != NULL && known != NULL;
}

COLD void paths_forget(void)
{
    if (steps != NULL)
        os_purge(steps, STEPS_BYTES);
    if (known != NULL)
        os_purge(known, KNOWN_BYTES);
    store_relaxed(&numbers, 0);
}

#define MIX ((uint64_t)0x9e3779b97f4a7c15)

FAST uint64_t mixed_with(uint64_t h, uint64_t word)
{
    h = (h ^ word) * MIX;
    return h ^ h >> 29;
}

FAST size_t step_place(uintptr_t code) { return (size_t)(code * MIX >> (64 - STEPS_BITS)); }

static SLOW const struct step *step_search(uintptr_t code)
{
    for (unsigned i = 1; i < TRIES; i++) {
        const struct step *step = &steps[(step_place(code) + i) % STEPS];
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
    const struct step *step = &steps[step_place(code)];
    return likely(load_relaxed(&step->code) == code) ? step : step_search(code);
}

/* What is read lies on the part of the stack that was seen in use by the same thread. Never 0. */
FAST uint64_t path_key(const struct tape *tape, struct caller from)
{
    uintptr_t code = (uintptr_t)from.code;
    uintptr_t stack = from.stack;
    uint64_t key = mixed_with(1, code);
    for (unsigned i = 0; RETURNS_ARE_ON_STACK && i < LAW_PATH_WALK; i++) {
        const struct step *step = step_of(code);
        uint32_t length = step != NULL ? load_relaxed(&step->length) : 0;
        if (unlikely(length <= STEP_VARIES) || unlikely(length > tape->stack_top - stack))
            break;
        stack += length;
        code = ((const uintptr_t *)stack)[-1];
        key = mixed_with(key, code);
    }
    return mixed_with(key, tape->stack_top - stack) | 1;
}

/* Its place, or where it may be entered, or null. */
static struct known *place_of(uint64_t key, bool enter)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct known *place = &known[((size_t)(key >> 20) + i) % PATHS];
        uint64_t there = load_relaxed(&place->key);
        if (there == 0 && enter &&
            __atomic_compare_exchange_n(&place->key, &there, key, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return place;
        if (there == key)
            return place;
        if (there == 0)
            return NULL;
    }
    return NULL;
}

static bool is_seen(const struct tape *tape, uintptr_t stack)
{
    return stack - tape->stack_low < tape->stack_top - tape->stack_low;
}

bool path_to_check(const struct tape *tape) { return tape->looked % LAW_PATH_LOOKS == 0; }

bool path_known(struct tape *tape, struct caller from, unsigned *path)
{
    ++tape->looked;
    if (unlikely(!is_seen(tape, from.stack)) || unlikely(path_to_check(tape)))
        return false;
    const struct known *place = place_of(path_key(tape, from), false);
    *path = place != NULL ? load_relaxed(&place->path) : 0;
    return likely(*path != 0);
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
        uint32_t length = step != NULL ? load_relaxed(&step->length) : 0;
        if (length <= STEP_VARIES || length > tape->stack_top - stack)
            return false;
        stack += length;
        code = ((const uintptr_t *)stack)[-1];
    }
    return true;
}

static void step_learn(uintptr_t code, uintptr_t length, bool ours)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct step *step = &steps[(step_place(code) + i) % STEPS];
        uint64_t there = load_relaxed(&step->code);
        if (there == 0)
            __atomic_compare_exchange_n(&step->code, &there, code, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        if (there != 0 && there != code)
            continue;
        uint32_t before = load_relaxed(&step->length);
        bool fits = length <= UINT32_MAX && (before == 0 || before == length);
        store_relaxed(&step->length, fits ? (uint32_t)length : STEP_VARIES);
        store_relaxed(&step->ours, ours);
        return;
    }
}

/* Only where the address that the unwinder found lies where path_key would look for it. */
static void steps_learn(const struct stack_read *stack)
{
    for (unsigned i = 0; RETURNS_ARE_ON_STACK && i + 1 < stack->count; i++) {
        uintptr_t next = stack->stacks[i + 1];
        uintptr_t length = next - stack->stacks[i];
        bool right = next > stack->stacks[i] && length % sizeof(uintptr_t) == 0 &&
                     ((const uintptr_t *)next)[-1] == stack->frames[i + 1] + 1;
        step_learn(stack->frames[i] + 1, right ? length : STEP_VARIES, false);
    }
}

/* How much may lie between two calls of one stack. */
#define STEP_MOST ((uintptr_t)1 << 20)

/* Another outermost call says that it is another stack; but one that was not read to its end. */
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
    bool same = within && (!whole || top == tape->stack_top);
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

unsigned path_enter(struct tape *tape, struct caller from, const struct stack_read *stack,
                    bool *is_new)
{
    *is_new = false;
    if (stack->count == 0)
        return PATH_NONE;
    uint64_t all = 2;
    for (unsigned i = 0; i < stack->count; i++)
        all = mixed_with(all, stack->frames[i]);
    all |= 1;
    range_learn(tape, from.stack, stack, stack->count < FRAMES_READ);
    if (from.code != (const void *)(stack->frames[0] + 1)) /* of ours, between */
        step_learn((uintptr_t)from.code, stack->stacks[0] - from.stack, true);
    steps_learn(stack);
    struct known *place = place_of(all, true);
    if (place == NULL)
        return PATH_NONE;
    uint32_t path = load_relaxed(&place->path);
    if (path == 0) {
        path = number_new();
        *is_new = path != PATH_NONE;
        store_relaxed(&place->path, path);
    }
    place = place_of(path_key(tape, from), true);
    if (place != NULL)
        store_relaxed(&place->path, path);
    return path;
}
