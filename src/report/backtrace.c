#define _GNU_SOURCE /* dl_iterate_phdr, _dl_find_object */
#include "report/backtrace.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/resume.h"
#include "os/self.h"
#include "os/symbols.h"

#define NAME_MOST 120 /* bytes of a name that are shown */
#define PATH_MOST 240

/* ---- frames ---- */

/* Whether code is hakmem's own. Only the shared library knows: there all code of its module is. */
#ifdef HAKMEM_SHARED
extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN; /* the linker's */

static bool is_ours(uintptr_t code)
{
    return code - (uintptr_t)__ehdr_start < (uintptr_t)etext - (uintptr_t)__ehdr_start;
}
#else
static bool is_ours(uintptr_t code)
{
    (void)code;
    return false;
}
#endif

#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIPInfo
#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetIP

bool backtrace_possible(void)
{
    return _Unwind_Backtrace != NULL && _Unwind_GetIPInfo != NULL && _Unwind_GetCFA != NULL;
}

/* What the unwinder may read beyond a frame to find the next: more than nearly every frame has. */
#define AHEAD ((size_t)1 << 10)
#define STEP_MOST ((size_t)1 << 20)

/* Whether there is memory where the next frame may be. A stack that the program made for itself may
 * end with an address that belongs to no call, and beyond it there may be nothing. */
static bool is_in_reach(void *of, uintptr_t frame)
{
    struct frames *trace = of;
    if (trace->present_until == 0)
        return true;
    uintptr_t end = frame + AHEAD;
    if (frame > trace->present_until + STEP_MOST)
        return false;
    for (; trace->present_until < end; trace->present_until += os_page)
        if (!os_readable((const void *)trace->present_until))
            return false;
    return true;
}

/* False where the walk ends with it. */
static bool add_call(struct frames *trace, uintptr_t call, uintptr_t stack)
{
    if (trace->stacks != NULL)
        trace->stacks[trace->count] = stack;
    trace->frames[trace->count++] = call;
    trace->whole = trace->knows_rest != NULL && trace->knows_rest(trace);
    return !trace->whole;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *argument)
{
    struct frames *trace = argument;
    int before_call = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &before_call);
    if (address == 0)
        return _URC_END_OF_STACK;
    /* What was above the caller is ours, too. */
    if (address == (uintptr_t)trace->caller)
        trace->count = 0;
    if (trace->count == 0 && is_ours(address))
        return _URC_NO_REASON;
    if (trace->count == trace->most || !is_in_reach(trace, _Unwind_GetCFA(context)))
        return _URC_END_OF_STACK;
#if CAN_RESUME
    if (trace->at != NULL)
        resume_note(trace->at, context);
#endif
    return add_call(trace, before_call ? address : address - 1, _Unwind_GetCFA(context))
               ? _URC_NO_REASON
               : _URC_END_OF_STACK;
}

#if CAN_RESUME
static _Unwind_Reason_Code add_further(struct _Unwind_Context *context, void *argument)
{
    return is_ours(_Unwind_GetIP(context)) ? _URC_NO_REASON : add_frame(context, argument);
}

static bool goes_on(const struct frames *trace)
{
    return trace->count > 0 && trace->count < trace->most && !trace->whole;
}

/* Passes code that has no unwind information. Few programs have such code: registers are noted only
 * in a second walk. */
static void go_on(struct frames *trace)
{
    if (trace->present_until == 0 || !goes_on(trace) ||
        !resume_needed(trace->frames[trace->count - 1]))
        return;
    struct registers at = {0};
    trace->at = &at;
    trace->count = 0;
    _Unwind_Backtrace(add_frame, trace);
    while (goes_on(trace) && resume_needed(trace->frames[trace->count - 1]) &&
           resume_step(&at, is_in_reach, trace)) {
        struct registers from = at;
        unsigned before = trace->count;
        if (resume_needed(at.ip - 1))
            add_call(trace, at.ip - 1, at.sp);
        else
            resume_walk(&from, add_further, trace);
        if (trace->count == before)
            break;
    }
    trace->at = NULL;
}
#else
static void go_on(struct frames *trace) { (void)trace; }
#endif

/* The unwinder ends the process where it does not find the code that calls it, which is so while
 * the program starts. */
static bool started; /* atomic */
void backtrace_start(void) { store_relaxed(&started, true); }

/* With _dl_find_object (glibc 2.35) the unwinder takes no lock of the dynamic linker. It has one of
 * its own for frames that a program registers: in the shared library nobody registers any, as the
 * unwinder is not the program's. */
#if defined(DLFO_EH_SEGMENT_TYPE) && defined(HAKMEM_SHARED)
#define TAKES_NO_LOCK true
#else
#define TAKES_NO_LOCK false
#endif

bool backtrace_cheap(void)
{
    return TAKES_NO_LOCK && backtrace_possible() && load_relaxed(&started);
}

void backtrace_fill(struct frames *trace)
{
    trace->count = 0;
    if (!backtrace_possible())
        return;
    _Unwind_Backtrace(add_frame, trace);
    go_on(trace);
}

void backtrace_take(struct backtrace *trace)
{
    struct frames frames = {
        .caller = trace->caller, .most = BACKTRACE_MOST, .frames = trace->frames};
    backtrace_fill(&frames);
    trace->count = frames.count;
}

/* ---- names ---- */

struct search {
    uintptr_t address;
    bool found;
    uintptr_t base;      /* of the module */
    const char *module;  /* its path; empty for the program */
    const char *symbol;  /* null if none is exported there */
    uintptr_t symbol_at; /* its address */
};

static void find_symbol(struct search *search, const ElfW(Dyn) * dynamic)
{
    struct symbols s = symbols_of(search->base, dynamic);
    if (s.table == NULL || s.names == NULL)
        return;
    size_t count = symbols_count(&s);
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &s.table[i];
        uintptr_t start = search->base + symbol->st_value;
        unsigned type = symbol->st_info & 0xf;
        if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT) ||
            search->address - start >= symbol->st_size)
            continue;
        search->symbol = s.names + symbol->st_name;
        search->symbol_at = start;
        return;
    }
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

static int find_in_module(struct dl_phdr_info *info, size_t bytes, void *argument)
{
    (void)bytes;
    struct search *search = argument;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && search->address - start < part->p_memsz)
            search->found = true;
    }
    if (!search->found)
        return 0;
    search->base = info->dlpi_addr;
    search->module = info->dlpi_name;
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    if (dynamic != NULL)
        find_symbol(search, dynamic);
    return 1;
}

/* Finds what dladdr would find, without the lock that dlopen holds while constructors run. */
bool backtrace_add_module(struct text *text, uintptr_t address)
{
    struct search search = {.address = address};
    char program[PATH_MOST + 1];
    dl_iterate_phdr(find_in_module, &search);
    if (!search.found)
        return false;
    if (search.symbol != NULL)
        text_write(text, " %.*s+%#lx", NAME_MOST, search.symbol, address - search.symbol_at);
    if (search.module == NULL || search.module[0] == '\0') {
        os_program_path(program, sizeof program);
        search.module = program;
    }
    text_write(text, " (%.*s+%#lx)", PATH_MOST, search.module, address - search.base);
    return true;
}

/* ---- functions ---- */

struct wanted {
    const char *name;
    void *found;
};

static bool is_exported_function(const ElfW(Sym) * symbol)
{
    unsigned visibility = symbol->st_other & 3;
    return symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 0xf) == STT_FUNC &&
           symbol->st_info >> 4 != STB_LOCAL &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

static int find_function(struct dl_phdr_info *info, size_t bytes, void *argument)
{
    (void)bytes;
    struct wanted *wanted = argument;
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    if (dynamic == NULL)
        return 0;
    struct symbols s = symbols_of(info->dlpi_addr, dynamic);
    if (s.table == NULL || s.names == NULL)
        return 0;
    size_t count = symbols_count(&s);
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &s.table[i];
        if (!is_exported_function(symbol) || !text_same(s.names + symbol->st_name, wanted->name))
            continue;
        wanted->found = (void *)(info->dlpi_addr + symbol->st_value);
        return 1;
    }
    return 0;
}

void *module_function(const char *name)
{
    struct wanted wanted = {name, NULL};
    dl_iterate_phdr(find_function, &wanted);
    return wanted.found;
}
