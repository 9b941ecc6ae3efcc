//! The heap as a whole, and what hakmem tells of blocks.

use crate::ffi;
use core::mem::{size_of, MaybeUninit};

/// What all memory is used for at one moment, in bytes, and counts beside; see [`stats`].
///
/// The eleven figures from `program` to `map` add up to `mapped`: every byte has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(C)]
pub struct Stats {
    /// Bytes mapped for hakmem by the kernel, touched or not.
    pub mapped: usize,
    /// Bytes in blocks that the program has.
    pub program: usize,
    /// Bytes in free blocks in threads' caches.
    pub thread_caches: usize,
    /// Bytes in free blocks in transfer caches, on their way from threads that free to threads that
    /// allocate.
    pub transfer: usize,
    /// Bytes in free blocks of slabs in use.
    pub free_in_slabs: usize,
    /// Bytes behind a slab's last block, and behind a large block's end.
    pub rest: usize,
    /// Bytes in free slices that may hold pages.
    pub retained: usize,
    /// Bytes in free slices that hold none.
    pub untouched: usize,
    /// Bytes in mappings kept for the next block of more than 2 MiB.
    pub kept: usize,
    /// Bytes in the allocator's own structures.
    pub metadata: usize,
    /// Bytes in the address map.
    pub map: usize,
    /// The most that `mapped` has been.
    pub mapped_most: usize,
    /// Regions of 4 MiB.
    pub superslabs: usize,
    /// Runs of slices that hold blocks of one class.
    pub slabs: usize,
    /// Blocks of slices of their own, up to 2 MiB.
    pub large_blocks: usize,
    /// Blocks in mappings of their own.
    pub huge_blocks: usize,
    /// Mappings that `kept` counts.
    pub kept_mappings: usize,
    /// Threads that have a cache.
    pub threads: usize,
    /// Refills of empty stacks in threads' caches, since the start.
    pub refills: usize,
    /// Flushes of full stacks in threads' caches, since the start.
    pub flushes: usize,
}

/// What all memory is used for now. Takes all of the allocator's locks for the moment.
///
/// ```
/// let stats = hakmem::stats();
/// assert!(stats.program <= stats.mapped);
/// assert!(stats.mapped <= stats.mapped_most);
/// ```
pub fn stats() -> Stats {
    let mut stats = MaybeUninit::uninit();
    // SAFETY: all bytes are written: what the library doesn't know is 0.
    unsafe {
        ffi::hakmem_stats(stats.as_mut_ptr(), size_of::<Stats>());
        stats.assume_init()
    }
}

/// Walks the heap and checks that all structures agree; what doesn't is reported on standard error,
/// a line each. Returns how many rules were found broken, so `Some(0)` is a whole heap; `None` when
/// there is no memory for the walk, about 1/128 of what is mapped.
///
/// Other threads wait meanwhile at their next visit to shared memory; what they change without a
/// lock is checked loosely, so a process of one thread is checked best.
///
/// ```
/// assert_eq!(hakmem::check(), Some(0));
/// ```
pub fn check() -> Option<usize> {
    // SAFETY: may be called by any thread at any time.
    usize::try_from(unsafe { ffi::hakmem_check() }).ok()
}

/// Gives the memory of all free blocks back to the kernel, as far as it can be had. Returns bytes
/// that went back and may have held pages.
///
/// hakmem gives idle memory back by itself; this is for the moment before a long rest.
///
/// ```
/// let idle = hakmem::purge();
/// println!("{} KiB went back", idle / 1024);
/// ```
pub fn purge() -> usize {
    // SAFETY: may be called by any thread at any time.
    unsafe { ffi::hakmem_purge() }
}

/// Bytes that a block for `size` bytes really has: a buffer that can choose its size loses nothing
/// by taking them all. 0 where `size` is more than hakmem ever gives.
///
/// ```
/// let buffer = Vec::<u8>::with_capacity(hakmem::good_size(1000));
/// assert!(buffer.capacity() >= 1000);
/// ```
pub fn good_size(size: usize) -> usize {
    // SAFETY: reads constant tables.
    unsafe { ffi::hakmem_good_size(size) }
}

/// Bytes that may be used at `p`, at least what was asked for; 0 for null.
///
/// # Safety
///
/// `p` is null or a block of hakmem's that is not freed. Any other pointer ends the program with a
/// report on standard error, if it is noticed.
pub unsafe fn usable_size(p: *const u8) -> usize {
    ffi::hakmem_malloc_usable_size(p.cast())
}

/// The current value of an option, named as in hakmem's list of options, in any case: sizes in
/// bytes, times in milliseconds, switches 0 or 1, `auto` as `u64::MAX`. `None` when there is no such option.
///
/// Options come from `HAKMEM_NAME` in the environment or from a file, and are read once, at the
/// process's first allocation.
///
/// ```
/// assert!(hakmem::option("stack_bytes").is_some());
/// assert_eq!(hakmem::option("no_such_option"), None);
/// ```
pub fn option(name: &str) -> Option<u64> {
    // No String: this may be asked for by whoever must not allocate. No option has so long a name.
    let mut text = [0; 64];
    if name.len() >= text.len() || name.bytes().any(|byte| byte == 0) {
        return None;
    }
    text[..name.len()].copy_from_slice(name.as_bytes());
    let mut value = 0;
    // SAFETY: the text ends with a 0.
    let result = unsafe { ffi::hakmem_option(text.as_ptr(), &mut value) };
    (result == 0).then_some(value)
}

/// Whether every free is checked at once from now on, at the cost of most of the speed: a double
/// free, or a pointer into a block, is then reported by the free itself and not when the block
/// leaves the thread's cache. Returns what it was.
///
/// ```
/// let before = hakmem::check_frees(true);
/// drop(Box::new(7));
/// hakmem::check_frees(before);
/// ```
pub fn check_frees(on: bool) -> bool {
    // SAFETY: may be called by any thread at any time.
    unsafe { ffi::hakmem_check_frees(on.into()) != 0 }
}

/// The library's version: major, minor, patch.
///
/// ```
/// assert!(hakmem::version() >= (0, 1, 0));
/// ```
pub fn version() -> (u32, u32, u32) {
    // SAFETY: returns a constant.
    let number = unsafe { ffi::hakmem_version() };
    (number / 10000, number / 100 % 100, number % 100)
}
