//! Functions about the whole heap, about sizes of blocks, and about options.

use crate::ffi;
use core::ffi::c_void;
use core::mem::{size_of, transmute, MaybeUninit};
use core::ptr::null_mut;

/// What all memory is used for at one moment, in bytes, and some counts; see [`stats`].
///
/// The ten fields from `program` to `map` add up to `mapped`: each byte is in exactly one of them.
/// Small blocks of one size lie in a *slab*, which consists of *slices* of 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(C)]
pub struct Stats {
    /// Bytes mapped from the kernel, touched or not.
    pub mapped: usize,
    /// Bytes in used blocks.
    pub program: usize,
    /// Bytes in free blocks in threads' caches.
    pub thread_caches: usize,
    /// Bytes in free blocks in transfer caches, on their way from threads that free to threads that
    /// allocate.
    pub transfer: usize,
    /// Bytes in free blocks of slabs in use.
    pub free_in_slabs: usize,
    /// Bytes after a slab's last block, and after a large block's end.
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
    /// Superslabs: the regions of 4 MiB that slices are taken from.
    pub superslabs: usize,
    /// Slabs, each of blocks of one size class.
    pub slabs: usize,
    /// Blocks that are runs of slices, up to 2 MiB.
    pub large_blocks: usize,
    /// Blocks that are mappings, above 2 MiB.
    pub huge_blocks: usize,
    /// How many mappings `kept` counts.
    pub kept_mappings: usize,
    /// Threads that have a cache.
    pub threads: usize,
    /// Refills of empty stacks in threads' caches, since the start.
    pub refills: usize,
    /// Flushes of full stacks in threads' caches, since the start.
    pub flushes: usize,
    /// Bytes given back to the kernel, since the start.
    pub returned: usize,
    /// Of those, bytes that were taken again since.
    pub taken_again: usize,
    /// Nanoseconds spent on giving back, since the start.
    pub returning_ns: usize,
    /// Times a size class began to compact, since the start.
    pub compactions: usize,
    /// Bytes of blocks that went back to their slabs at once for that.
    pub compacted: usize,
    /// Bytes that became free in the mostly free slabs of such classes, since the start: slabs that
    /// became empty, and pages that were returned to the kernel.
    pub regained: usize,
    /// Bytes of pages in slabs in use that are returned to the kernel now. Only free blocks lie on
    /// them, so of `free_in_slabs` about so much is not resident.
    pub returned_in_slabs: usize,
    /// Bytes in slices and huge blocks, in use or kept: what the options `soft_limit_bytes` and
    /// `hard_limit_bytes` compare with.
    pub held: usize,
    /// The lowest memory limit of the container (cgroup), as it was read last; 0 if there is none.
    /// It is not read before 4 MiB of free memory are kept.
    pub container_limit: usize,
}

/// Returns what all memory is used for now. Holds all of the allocator's locks meanwhile.
///
/// ```
/// let stats = hakmem::stats();
/// assert!(stats.program <= stats.mapped);
/// assert!(stats.mapped <= stats.mapped_most);
/// ```
pub fn stats() -> Stats {
    let mut stats = MaybeUninit::uninit();
    // SAFETY: all bytes are written; fields that the library does not know become 0.
    unsafe {
        ffi::hakmem_stats(stats.as_mut_ptr(), size_of::<Stats>());
        stats.assume_init()
    }
}

/// Walks the heap, checks that all structures agree, and reports each error in one line on standard
/// error. Returns how many rules are broken: `Some(0)` means that there is no error, `None` that
/// there is no memory for the walk (about 1/128 of what is mapped).
///
/// Other threads wait at their next visit to shared memory until the walk is over. What they change
/// without a lock is checked less strictly, so the check is best in a process of one thread.
///
/// ```
/// assert_eq!(hakmem::check(), Some(0));
/// ```
pub fn check() -> Option<usize> {
    // SAFETY: may be called by any thread at any time.
    usize::try_from(unsafe { ffi::hakmem_check() }).ok()
}

/// Returns the memory of free blocks to the kernel, as far as possible. Returns how many bytes went
/// back that may have held pages.
///
/// hakmem returns idle memory by itself; call this before the program is idle for long.
///
/// ```
/// let idle = hakmem::purge();
/// println!("{} KiB went back", idle / 1024);
/// ```
pub fn purge() -> usize {
    // SAFETY: may be called by any thread at any time.
    unsafe { ffi::hakmem_purge() }
}

/// Returns how many bytes a block for `size` bytes has. A buffer that can choose its size can use
/// all of them at no cost. Returns 0 if `size` is more than hakmem can give.
///
/// ```
/// let buffer = Vec::<u8>::with_capacity(hakmem::good_size(1000));
/// assert!(buffer.capacity() >= 1000);
/// ```
pub fn good_size(size: usize) -> usize {
    // SAFETY: reads constant tables.
    unsafe { ffi::hakmem_good_size(size) }
}

/// Returns how many bytes may be used at `p`, at least as many as were requested; 0 for null.
///
/// # Safety
///
/// `p` must be null or a block of hakmem's that is not freed. If hakmem recognizes another pointer,
/// it ends the program with a report on standard error.
pub unsafe fn usable_size(p: *const u8) -> usize {
    ffi::hakmem_malloc_usable_size(p.cast())
}

/// Returns the current value of an option; its name may be in upper or lower case. Sizes are in
/// bytes, switches 0 or 1; `auto` is `u64::MAX`. `None` if there is no such option.
///
/// Options come from `HAKMEM_NAME` in the environment or from a file, and are read once, at the
/// process's first allocation.
///
/// ```
/// assert!(hakmem::option("stack_bytes").is_some());
/// assert_eq!(hakmem::option("no_such_option"), None);
/// ```
pub fn option(name: &str) -> Option<u64> {
    let text = c_text(name)?;
    let mut value = 0;
    // SAFETY: the text ends with a 0.
    let result = unsafe { ffi::hakmem_option(text.as_ptr(), &mut value) };
    (result == 0).then_some(value)
}

/// Changes an option while the program runs: `thread_bytes`, `keep_bytes`,
/// `soft_limit_bytes`, `hard_limit_bytes`, `report_no_memory`, `check_frees`, `abort_on_misuse`,
/// `compact`, `profile`, `profile_rss`, `profile_rate` or `profile_samples`. False if there is no such option, if it can only be set when a process starts, or if the value is out
/// of bounds.
///
/// ```
/// assert!(hakmem::set_option("compact", 1));
/// assert!(!hakmem::set_option("compact", 2));
/// ```
pub fn set_option(name: &str, value: u64) -> bool {
    match c_text(name) {
        // SAFETY: the text ends with a 0.
        Some(text) => unsafe { ffi::hakmem_option_set(text.as_ptr(), value) == 0 },
        None => false,
    }
}

extern "C" fn call(argument: *mut c_void) {
    // SAFETY: the argument is what `on_soft_limit` has passed, a function of this type.
    let called: fn() = unsafe { transmute(argument) };
    called();
}

/// Sets the function that is called when the heap passes the option `soft_limit_bytes`, and free
/// memory that went back to the kernel was not enough; `None` for no function. It is called once
/// each time that the limit is passed, in a call of the allocator. It may allocate and free. It
/// must not take a lock that a thread may hold while it allocates or frees, and must not panic:
/// setting a flag is best.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// static LARGE: AtomicBool = AtomicBool::new(false);
///
/// hakmem::on_soft_limit(Some(|| LARGE.store(true, Ordering::Relaxed)));
/// assert!(hakmem::set_option("soft_limit_bytes", 1 << 30));
/// assert!(!LARGE.load(Ordering::Relaxed));
/// ```
pub fn on_soft_limit(called: Option<fn()>) {
    let argument = called.map_or(null_mut(), |called| called as *mut c_void);
    // SAFETY: may be called by any thread at any time; `call` gets what it expects.
    unsafe { ffi::hakmem_on_soft_limit(called.map(|_| call as extern "C" fn(_)), argument) }
}

/// The formats of [`sheet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SheetFormat {
    /// A table for people.
    Text = 0,
    /// OpenMetrics text, which Prometheus reads.
    OpenMetrics = 1,
}

/// Writes what the resident memory of this process is used for to a file descriptor. The parts add
/// up to the figure of the kernel. Takes no lock and allocates nothing. The error is a number of
/// `errno`: of `/proc`, if that is not there or may not be read, or of the file descriptor.
///
/// ```
/// let result = hakmem::sheet(2, hakmem::SheetFormat::Text); // standard error
/// assert_eq!(result, Ok(()));
/// ```
pub fn sheet(fd: i32, format: SheetFormat) -> Result<(), i32> {
    // SAFETY: may be called by any thread at any time, with any number.
    match unsafe { ffi::hakmem_sheet(fd, format as i32) } {
        0 => Ok(()),
        error => Err(error),
    }
}

/// No String, because the caller may be code that must not allocate. No option has so long a name.
fn c_text(name: &str) -> Option<[u8; 64]> {
    let mut text = [0; 64];
    if name.len() >= text.len() || name.bytes().any(|byte| byte == 0) {
        return None;
    }
    text[..name.len()].copy_from_slice(name.as_bytes());
    Some(text)
}

/// Turns on or off that every free is checked at once, which costs most of the speed. While it is
/// on, the wrong call itself reports a double free or a pointer into a block; otherwise that can
/// happen when the block leaves the thread's cache. Returns the previous setting.
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

/// Returns the library's version: major, minor, patch.
///
/// ```
/// assert!(hakmem::version() >= (0, 1, 0));
/// ```
pub fn version() -> (u32, u32, u32) {
    // SAFETY: returns a constant.
    let number = unsafe { ffi::hakmem_version() };
    (number / 10000, number / 100 % 100, number % 100)
}
