"""What the options in jemalloc's MALLOC_CONF mean with hakmem. docs/guide/migration.md explains."""

from __future__ import annotations

NOTHING = "nothing to set"
NOT_HERE = "not available"
_CACHES = "HAKMEM_THREAD_BYTES and HAKMEM_STACK_BYTES"
_PROFILE = "hakmem run --profile"
_AT_ONCE = "HAKMEM_KEEP_BYTES=0"
_NEVER = "HAKMEM_KEEP_BYTES=1024G"

# By the option, or by the option and its value.
ADVICE = {
    "abort": "on by itself: HAKMEM_ABORT_ON_MISUSE",
    "abort_conf": "hakmem options shows the values that would be used",
    "background_thread": NOTHING,
    "background_thread:false": "HAKMEM_SCAVENGER=off",
    "cache_oblivious": NOTHING,
    "confirm_conf": "hakmem options shows the values that would be used",
    "dirty_decay_ms": NOTHING,
    "dirty_decay_ms:0": _AT_ONCE,
    "dirty_decay_ms:-1": _NEVER,
    "dss": NOTHING,
    "hpa": NOTHING,
    "junk": NOT_HERE,
    "lg_extent_max_active_fit": NOTHING,
    "lg_prof_interval": "HAKMEM_PROFILE_RSS writes a profile each time memory grew",
    "lg_prof_sample": "HAKMEM_PROFILE_RATE, in bytes",
    "lg_tcache_max": _CACHES,
    "max_background_threads": NOTHING,
    "metadata_thp": NOTHING,
    "muzzy_decay_ms": NOTHING,
    "narenas": NOTHING,
    "oversize_threshold": NOTHING,
    "percpu_arena": NOTHING,
    "prof": _PROFILE,
    "prof:false": NOTHING,
    "prof_accum": NOTHING,
    "prof_active": _PROFILE,
    "prof_active:false": NOTHING,
    "prof_final": "HAKMEM_PROFILE_FILE",
    "prof_gdump": "HAKMEM_PROFILE_RSS writes a profile each time memory grew",
    "prof_leak": "hakmem run --leaks",
    "prof_leak_error": "hakmem run --leaks",
    "prof_prefix": "HAKMEM_PROFILE_FILE",
    "retain": NOTHING,
    "stats_interval": "hakmem top --once --every SECONDS PID",
    "stats_print": "HAKMEM_STATS=exit",
    "tcache": NOTHING,
    "tcache:false": "HAKMEM_CHECK_FREES=on keeps no caches, for tests: it costs most of the speed",
    "tcache_max": _CACHES,
    "thp": NOTHING,
    "thp:never": "HAKMEM_HUGE_PAGES=off",
    "trust_madvise": NOTHING,
    "utrace": NOT_HERE,
    "xmalloc": NOT_HERE,
    "zero": NOT_HERE,
}


def advice(options: str) -> str:
    """For each option in MALLOC_CONF, in its order: what to set instead."""
    found = []
    for pair in filter(None, (part.strip() for part in options.split(","))):
        option = pair.partition(":")[0]
        meaning = ADVICE.get(pair) or ADVICE.get(option) or "hakmem has nothing of this name"
        found.append(f"{pair}: {meaning}")
    return "; ".join(found)
