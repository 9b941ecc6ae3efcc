//! For programs that can move their blocks.

use crate::alloc::{is_aligned, size_of_malloc, Hakmem};
use crate::ffi;
use core::alloc::{GlobalAlloc, Layout};

/// Larger blocks have pages of their own, so one place for them is as good as another.
const IN_SLABS: usize = 32 << 10;

/// Moves a block to the lowest free place for its size if that helps to make pages free, and returns
/// its address: the new one, or `p` if the block stays where it is.
///
/// After a program has dropped most of its blocks here and there, nearly every page still holds a
/// block in use, and cannot be returned to the kernel. Call this for all blocks that the program can
/// move, some at a time, until hardly any moves. Pages that become empty are returned as after any
/// free.
///
/// It takes locks, and blocks above 32 KiB, which have pages of their own, always stay. Without
/// memory for another block, the block stays, too.
///
/// ```
/// use std::alloc::Layout;
///
/// #[global_allocator]
/// static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;
///
/// fn defrag<T>(block: Box<T>) -> Box<T> {
///     if Layout::new::<T>().size() == 0 {
///         return block; // no block
///     }
///     let p = Box::into_raw(block);
///     // SAFETY: hakmem is the global allocator, and the box has the only pointer to its block.
///     unsafe { Box::from_raw(hakmem::defrag(p.cast(), Layout::new::<T>()).cast()) }
/// }
///
/// let mut boxes: Vec<_> = (0..10_000).map(|i| Box::new([i; 50])).collect();
/// boxes.retain(|numbers| numbers[0] % 5 == 0);
/// boxes = boxes.into_iter().map(defrag).collect();
/// assert!(boxes.iter().all(|numbers| numbers[0] == numbers[49]));
/// ```
///
/// # Safety
///
/// `p` must be a block of hakmem's that was allocated with this layout and is not freed. No other
/// thread may access it meanwhile. If another address is returned, `p` is freed: all pointers and
/// references to the block must be replaced. So what it contains must not be pinned.
pub unsafe fn defrag(p: *mut u8, layout: Layout) -> *mut u8 {
    if !defrag_hint(p) {
        return p;
    }
    let other = defrag_malloc(layout);
    if other.is_null() {
        return p;
    }
    other.copy_from_nonoverlapping(p, layout.size());
    defrag_free(p);
    other
}

/// Whether the block at `p` is worth moving: [`defrag_malloc`], if this thread calls it next, places it
/// lower, and the slab that it leaves can become empty in this way. `false` for null, and for blocks
/// above 32 KiB, which have pages of their own.
///
/// [`defrag`] calls this and the two functions below. Call them instead if the content can't be
/// copied byte by byte.
///
/// # Safety
///
/// As for [`usable_size`](crate::usable_size): `p` must be null or a block of hakmem's that is not
/// freed.
pub unsafe fn defrag_hint(p: *const u8) -> bool {
    ffi::hakmem_defrag_hint(p.cast()) != 0
}

/// Allocates a block as [`Hakmem`] does, but not from the thread's cache: at the lowest free place for
/// its size in the part of the heap in which the block of the last hint is. Slower: it takes locks. Returns null without memory.
///
/// Blocks of this function and of [`Hakmem`] are the same: they may be reallocated and freed by the
/// methods of [`Hakmem`] with this layout, or by [`defrag_free`].
pub fn defrag_malloc(layout: Layout) -> *mut u8 {
    let size = size_of_malloc(layout);
    // SAFETY: a block that is freed here was allocated here, and nobody else knows it. Hakmem allows
    // any layout.
    unsafe {
        if size <= IN_SLABS {
            let p = ffi::hakmem_defrag_malloc(size);
            if is_aligned(p, layout) {
                return p.cast();
            }
            ffi::hakmem_defrag_free(p);
        }
        Hakmem.alloc(layout)
    }
}

/// Frees a block of any layout as [`Hakmem`] does, but returns it to its slab at once. Otherwise the
/// thread's next allocation would take it. Slower: it takes locks. Does nothing if `p` is null.
///
/// # Safety
///
/// `p` must be null or a block of hakmem's that is not freed. It must not be used any more.
pub unsafe fn defrag_free(p: *mut u8) {
    ffi::hakmem_defrag_free(p.cast());
}

/// How many bytes moving blocks can give back: those of slabs that would be empty if their blocks filled
/// free places in others, but for pages that were returned to the kernel already. It reads a few sums,
/// so a program can ask often, and walk over its blocks only when it is worth while.
pub fn defrag_gain() -> usize {
    // SAFETY: no preconditions.
    unsafe { ffi::hakmem_defrag_gain() }
}
