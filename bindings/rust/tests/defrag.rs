//! Programs that move their blocks, beside the system's allocator, which serves the tests themselves.

use hakmem::Hakmem;
use std::alloc::{GlobalAlloc, Layout};
use std::slice;
use std::sync::Mutex;

/// The tests look at statistics of the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const COUNT: usize = 50_000;
const KEPT_OF: usize = 5;
const PASSES: usize = 4;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

unsafe fn assert_filled(p: *mut u8, layout: Layout, value: u8) {
    let found = slice::from_raw_parts(p, layout.size());
    assert!(found.iter().all(|&byte| byte == value), "{layout:?}");
}

/// Many blocks, of which one in `KEPT_OF` stays, each with a value of its own.
unsafe fn thinned_out(layout: Layout) -> Vec<(*mut u8, u8)> {
    let blocks: Vec<_> = (0..COUNT)
        .map(|i| (Hakmem.alloc(layout), i as u8))
        .collect();
    for &(p, value) in &blocks {
        p.write_bytes(value, layout.size());
    }
    let mut kept = Vec::new();
    for (i, &(p, value)) in blocks.iter().enumerate() {
        if i % KEPT_OF == 0 {
            kept.push((p, value));
        } else {
            Hakmem.dealloc(p, layout);
        }
    }
    kept
}

/// Moves all that is worth it; returns how many.
unsafe fn pass(blocks: &mut [(*mut u8, u8)], layout: Layout) -> usize {
    let mut moved = 0;
    for (p, _) in blocks {
        let before = *p;
        *p = hakmem::defrag(before, layout);
        moved += usize::from(*p != before);
    }
    moved
}

#[test]
fn moved_blocks_lie_together() {
    let _alone = ONE_AT_A_TIME.lock();
    for layout in [
        layout(24, 8),
        layout(200, 1),
        layout(192, 64),
        layout(1024, 1024),
    ] {
        unsafe {
            let mut blocks = thinned_out(layout);
            let before = hakmem::stats().slabs;
            let gain = hakmem::defrag_gain();
            let moved: Vec<_> = (0..PASSES).map(|_| pass(&mut blocks, layout)).collect();
            let after = hakmem::stats().slabs;
            assert!(
                hakmem::defrag_gain() < gain / 4,
                "{layout:?}: {gain}, {}",
                hakmem::defrag_gain()
            );
            assert!(moved[0] > blocks.len() / 2, "{layout:?}: {moved:?}");
            assert!(
                moved[PASSES - 1] < blocks.len() / 50,
                "{layout:?}: {moved:?}"
            );
            let possible = (COUNT - blocks.len()) * layout.size() / 65536;
            assert!(
                before - after > possible / 2,
                "{layout:?}: {before}, {after} slabs"
            );
            for (p, value) in blocks {
                assert_eq!(p as usize % layout.align(), 0, "{layout:?}");
                assert_filled(p, layout, value);
                hakmem::defrag_free(p);
            }
        }
    }
    assert_eq!(hakmem::check(), Some(0));
}

#[test]
fn any_function_frees_the_blocks_of_any() {
    let _alone = ONE_AT_A_TIME.lock();
    for align in (0..=16).map(|bits| 1 << bits) {
        for size in [0, 1, 15, 16, 100, 3000, 32_768, 32_769, 300_000, 3 << 20] {
            let layout = layout(size, align);
            unsafe {
                let blocks = [
                    hakmem::defrag_malloc(layout),
                    Hakmem.alloc(layout),
                    hakmem::defrag_malloc(layout),
                    Hakmem.alloc_zeroed(layout),
                ];
                for p in blocks {
                    assert!(!p.is_null(), "{layout:?}");
                    assert_eq!(p as usize % align, 0, "{layout:?}");
                    assert!(hakmem::usable_size(p) >= size, "{layout:?}");
                    p.write_bytes(7, size);
                }
                for p in &blocks[..2] {
                    Hakmem.dealloc(*p, layout);
                }
                for p in &blocks[2..] {
                    let p = hakmem::defrag(*p, layout);
                    assert_filled(p, layout, 7);
                    hakmem::defrag_free(p);
                }
            }
        }
    }
    assert_eq!(hakmem::check(), Some(0));
}

#[test]
fn null_and_what_has_pages_of_its_own_stay() {
    let _alone = ONE_AT_A_TIME.lock();
    unsafe {
        assert!(!hakmem::defrag_hint(std::ptr::null()));
        hakmem::defrag_free(std::ptr::null_mut());
        for size in [32_769, 300_000, 3 << 20] {
            let layout = layout(size, 1);
            let p = Hakmem.alloc(layout);
            assert!(!hakmem::defrag_hint(p));
            assert_eq!(hakmem::defrag(p, layout), p);
            Hakmem.dealloc(p, layout);
        }
        let too_much = layout(isize::MAX as usize, 1);
        assert!(hakmem::defrag_malloc(too_much).is_null());
    }
}
