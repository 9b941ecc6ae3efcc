//! What the crate uses of `hakmem.h`, in the types that C's are on 64-bit Linux.

use crate::Stats;
use core::ffi::c_void;

extern "C" {
    pub fn hakmem_malloc(n: usize) -> *mut c_void;
    pub fn hakmem_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn hakmem_realloc(p: *mut c_void, n: usize) -> *mut c_void;
    pub fn hakmem_free(p: *mut c_void);
    pub fn hakmem_free_sized(p: *mut c_void, n: usize);
    pub fn hakmem_aligned_alloc(align: usize, n: usize) -> *mut c_void;
    pub fn hakmem_malloc_usable_size(p: *const c_void) -> usize;
    pub fn hakmem_option(name: *const u8, value: *mut u64) -> i32;
    pub fn hakmem_option_set(name: *const u8, value: u64) -> i32;
    pub fn hakmem_good_size(n: usize) -> usize;
    pub fn hakmem_purge() -> usize;
    pub fn hakmem_on_soft_limit(called: Option<extern "C" fn(*mut c_void)>, argument: *mut c_void);
    pub fn hakmem_defrag_hint(p: *const c_void) -> i32;
    pub fn hakmem_defrag_malloc(n: usize) -> *mut c_void;
    pub fn hakmem_defrag_free(p: *mut c_void);
    pub fn hakmem_defrag_gain() -> usize;
    pub fn hakmem_stats(stats: *mut Stats, size: usize) -> usize;
    pub fn hakmem_sheet(fd: i32, format: i32) -> i32;
    pub fn hakmem_mark(name: *const u8);
    pub fn hakmem_profile_start() -> i32;
    pub fn hakmem_profile_stop() -> i32;
    pub fn hakmem_profile_write(fd: i32) -> i32;
    pub fn hakmem_version() -> u32;
    pub fn hakmem_check_frees(on: i32) -> i32;
    pub fn hakmem_check() -> i64;
}
