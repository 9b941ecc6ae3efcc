//! `GlobalAlloc` at its edges, beside the system's allocator, which serves the tests themselves.

use hakmem::Hakmem;
use std::alloc::{GlobalAlloc, Layout};
use std::slice;

const ALIGNMENTS: std::ops::RangeInclusive<u32> = 0..=26; // 1 byte to 64 MiB

const SIZES: [usize; 16] = [
    1, 2, 8, 15, 16, 17, 100, 1000, 1024, 4096, 5000, 32_768, 32_769, 100_000, 262_145, 9_000_000,
];

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// Its first and last bytes, and some between: all would be slow with the large ones.
unsafe fn fill(p: *mut u8, size: usize, value: u8) {
    for at in places(size) {
        p.add(at).write(value ^ at as u8);
    }
}

unsafe fn assert_filled(p: *mut u8, size: usize, value: u8) {
    for at in places(size) {
        assert_eq!(p.add(at).read(), value ^ at as u8, "byte {at} of {size}");
    }
}

/// Does not depend on the size but for its end, so that a block that grew or shrank has them too.
fn places(size: usize) -> impl Iterator<Item = usize> {
    (0..size.min(300)).chain((300..size).step_by(1999))
}

fn assert_block(p: *mut u8, layout: Layout) {
    assert!(!p.is_null(), "{layout:?}");
    assert_eq!(p as usize % layout.align(), 0, "{layout:?}");
    assert!(
        unsafe { hakmem::usable_size(p) } >= layout.size(),
        "{layout:?}"
    );
}

#[test]
fn every_alignment_and_size() {
    for align in ALIGNMENTS.map(|bits| 1 << bits) {
        for layout in SIZES.map(|size| layout(size, align)) {
            unsafe {
                let blocks = [
                    Hakmem.alloc(layout),
                    Hakmem.alloc(layout),
                    Hakmem.alloc(layout),
                ];
                for (value, &p) in (0..).zip(&blocks) {
                    assert_block(p, layout);
                    fill(p, layout.size(), value);
                }
                for (value, &p) in (0..).zip(&blocks) {
                    assert_filled(p, layout.size(), value);
                    Hakmem.dealloc(p, layout);
                }
            }
        }
    }
}

#[test]
fn no_size() {
    for align in [1, 16, 32, 4096, 1 << 20] {
        let (nothing, something) = (layout(0, align), layout(100, align));
        unsafe {
            let (one, other) = (Hakmem.alloc(nothing), Hakmem.alloc_zeroed(nothing));
            assert_block(one, nothing);
            assert_block(other, nothing);
            assert_ne!(one, other);
            let one = Hakmem.realloc(one, nothing, something.size());
            assert_block(one, something);
            let one = Hakmem.realloc(one, something, 0);
            assert_block(one, nothing);
            Hakmem.dealloc(one, nothing);
            Hakmem.dealloc(other, nothing);
        }
    }
}

#[test]
fn more_than_there_is_is_null() {
    for align in [1, 16, 64, 4096, 1 << 20] {
        // The most that a layout can ask for, and the most of this processor's addresses.
        for size in [isize::MAX as usize - (align - 1), 1 << 47] {
            let (huge, small) = (layout(size, align), layout(100, align));
            unsafe {
                assert!(Hakmem.alloc(huge).is_null());
                assert!(Hakmem.alloc_zeroed(huge).is_null());
                let p = Hakmem.alloc(small);
                fill(p, 100, 1);
                assert!(Hakmem.realloc(p, small, size).is_null());
                assert_filled(p, 100, 1); // as it was
                Hakmem.dealloc(p, small);
            }
        }
    }
    unsafe { assert!(Hakmem.alloc(layout(1, 1 << 62)).is_null()) };
}

#[test]
fn zeroed_after_dirty() {
    for align in [1, 8, 16, 32, 64, 4096, 8192, 1 << 20] {
        for layout in SIZES.map(|size| layout(size, align)) {
            unsafe {
                for _ in 0..2 {
                    let dirty = Hakmem.alloc(layout);
                    dirty.write_bytes(0xff, layout.size());
                    Hakmem.dealloc(dirty, layout);
                    let p = Hakmem.alloc_zeroed(layout);
                    assert_block(p, layout);
                    assert!(slice::from_raw_parts(p, layout.size())
                        .iter()
                        .all(|&byte| byte == 0));
                    p.write_bytes(0xff, layout.size());
                    Hakmem.dealloc(p, layout);
                }
            }
        }
    }
}

#[test]
fn realloc_keeps_content_and_alignment() {
    for align in [1, 8, 16, 32, 64, 4096, 8192, 1 << 16, 1 << 20, 1 << 26] {
        for from in SIZES {
            for to in SIZES {
                let (from, to) = (layout(from, align), layout(to, align));
                let both = from.size().min(to.size());
                unsafe {
                    let p = Hakmem.alloc(from);
                    fill(p, both, 7);
                    let p = Hakmem.realloc(p, from, to.size());
                    assert_block(p, to);
                    assert_filled(p, both, 7);
                    fill(p, to.size(), 8);
                    assert_filled(p, to.size(), 8);
                    Hakmem.dealloc(p, to);
                }
            }
        }
    }
}

#[test]
fn realloc_stays_where_it_fits() {
    for align in [1, 16, 64, 4096] {
        let wanted = layout(1 << 20, align);
        unsafe {
            let p = Hakmem.alloc(wanted);
            assert_eq!(Hakmem.realloc(p, wanted, wanted.size() - 100), p);
            Hakmem.dealloc(p, layout(wanted.size() - 100, align));
        }
    }
}

#[test]
fn a_block_is_as_large_as_good_size_says() {
    for size in SIZES {
        let wanted = layout(size, 1);
        unsafe {
            let p = Hakmem.alloc(wanted);
            assert_eq!(hakmem::usable_size(p), hakmem::good_size(size));
            Hakmem.dealloc(p, wanted);
        }
    }
    assert_eq!(hakmem::good_size(usize::MAX), 0);
    assert_eq!(unsafe { hakmem::usable_size(std::ptr::null()) }, 0);
}
