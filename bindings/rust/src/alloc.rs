//! hakmem as a [`GlobalAlloc`].

use crate::ffi;
use crate::heap::usable_size;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

/// The alignment of malloc's blocks.
const MALLOC_ALIGN: usize = 16;

/// hakmem as a Rust allocator: the program's global allocator, or an additional one.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
///
/// let words: Vec<String> = ["every", "block", "is", "hakmem's"].map(String::from).into();
/// assert!(unsafe { hakmem::usable_size(words.as_ptr().cast()) } >= 4 * 24);
/// ```
///
/// The type has no fields, so all its values are one allocator: a block of one value may be freed
/// through another, by any thread. Without memory, and for sizes that no machine has, the methods
/// return null. They never panic.
///
/// Blocks with an alignment of up to 16 cost what C's `malloc` and `free` cost. `realloc` leaves a
/// block where it is as long as the new size fits and fills more than half of it. Blocks above 32 KiB
/// may also grow or shrink in place, and those above 2 MiB move without being copied. With an
/// alignment above 16, a block that does not fit is copied. [`GlobalAlloc`] does not allow a size of
/// 0; here it is treated as 1.
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

    // hakmem does not rely on the size; with the option check_sizes it compares the size with the
    // block's. A block with a larger alignment may have another size than hakmem would choose now:
    // see `realloc_aligned`.
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
        // C's realloc to size 0 frees the block.
        let new_size = new_size.max(1);
        if layout.align() <= MALLOC_ALIGN {
            ffi::hakmem_realloc(p.cast(), new_size).cast()
        } else {
            realloc_aligned(p, layout, new_size)
        }
    }
}

/// For alignments up to this, malloc mostly returns a block that is aligned already: there are size
/// classes for multiples of it, and their blocks lie side by side. This is not guaranteed, so the
/// result is checked. It halves the instructions, and calloc knows which memory is fresh from the
/// kernel.
const PAGE: usize = 4096;

pub(crate) fn is_aligned(p: *mut c_void, layout: Layout) -> bool {
    p as usize & (layout.align() - 1) == 0 // null too
}

/// How much malloc is asked for, so that its block mostly is aligned.
pub(crate) fn size_of_malloc(layout: Layout) -> usize {
    if layout.align() <= MALLOC_ALIGN {
        layout.size()
    } else {
        layout.pad_to_align().size()
    }
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

/// C's realloc does not preserve an alignment above 16. As with C's realloc, the block stays where it
/// is if the new size fills more than half of it, or if there is no memory for a smaller one.
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
