//! The allocator as Rust knows allocators.

use crate::ffi;
use crate::heap::usable_size;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

/// What malloc's blocks lie at multiples of.
const MALLOC_ALIGN: usize = 16;

/// hakmem as an allocator: the program's, or one beside it.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
///
/// let words: Vec<String> = ["every", "block", "is", "hakmem's"].map(String::from).into();
/// assert!(unsafe { hakmem::usable_size(words.as_ptr().cast()) } >= 4 * 24);
/// ```
///
/// It holds nothing, so all values of the type are the same allocator: a block of one may be freed
/// through another, by any thread. Without memory, and for sizes that no machine has, the answer is
/// null; nothing here panics.
///
/// Blocks up to an alignment of 16 cost what C's `malloc` and `free` cost. `realloc` leaves a block
/// where it is as long as it fits and fills more than half; blocks above 32 KiB may also grow or
/// shrink in place, and those above 2 MiB move without being copied. Above an alignment of 16 what
/// doesn't fit is copied. A size of 0, which [`GlobalAlloc`] doesn't allow, does no harm here: it is
/// served as 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hakmem;

unsafe impl GlobalAlloc for Hakmem {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            ffi::hakmem_malloc(layout.size()).cast()
        } else {
            alloc_aligned(layout)
        }
    }

    // The size is never trusted; the option check_sizes has it compared with the block's. A block of
    // a larger alignment need not be of the size that hakmem would choose now: see `realloc_aligned`.
    #[inline]
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        if layout.align() <= MALLOC_ALIGN {
            ffi::hakmem_free_sized(p.cast(), layout.size());
        } else {
            ffi::hakmem_free(p.cast());
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            ffi::hakmem_calloc(1, layout.size()).cast()
        } else {
            alloc_zeroed_aligned(layout)
        }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // C's realloc to no size is a free.
        let new_size = new_size.max(1);
        if layout.align() <= MALLOC_ALIGN {
            ffi::hakmem_realloc(p.cast(), new_size).cast()
        } else {
            realloc_aligned(p, layout, new_size)
        }
    }
}

/// Up to this alignment malloc mostly does: it has size classes for multiples of it, and their blocks
/// lie side by side. That is not promised, so it is looked at, but it halves the instructions, and
/// calloc knows which memory is fresh from the kernel.
const PAGE: usize = 4096;

fn is_aligned(p: *mut c_void, layout: Layout) -> bool {
    p as usize & (layout.align() - 1) == 0 // null too
}

unsafe fn alloc_aligned(layout: Layout) -> *mut u8 {
    if layout.align() <= PAGE {
        let p = ffi::hakmem_malloc(layout.pad_to_align().size());
        if is_aligned(p, layout) {
            return p.cast();
        }
        ffi::hakmem_free(p);
    }
    ffi::hakmem_aligned_alloc(layout.align(), layout.size()).cast()
}

unsafe fn alloc_zeroed_aligned(layout: Layout) -> *mut u8 {
    if layout.align() <= PAGE {
        let p = ffi::hakmem_calloc(1, layout.pad_to_align().size());
        if is_aligned(p, layout) {
            return p.cast();
        }
        ffi::hakmem_free(p);
    }
    let p: *mut u8 = ffi::hakmem_aligned_alloc(layout.align(), layout.size()).cast();
    if !p.is_null() {
        p.write_bytes(0, layout.size());
    }
    p
}

/// C's realloc keeps no alignment above its own. As there, a block stays while it is filled by more
/// than half, and where there is no memory to make it smaller.
unsafe fn realloc_aligned(p: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let usable = usable_size(p);
    let least = new_size.max(layout.align());
    if least <= usable && least > usable / 2 {
        return p;
    }
    let other = alloc_aligned(Layout::from_size_align_unchecked(new_size, layout.align()));
    if other.is_null() {
        return if new_size <= usable { p } else { other };
    }
    other.copy_from_nonoverlapping(p, layout.size().min(new_size));
    ffi::hakmem_free(p.cast());
    other
}
