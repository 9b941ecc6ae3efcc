//! What a `Box` of 64 bytes costs, aligned to 64 or not. In instructions, by the difference of two
//! counts of rounds:
//!
//! ```sh
//! cargo build --release --example round_trip
//! valgrind --tool=callgrind target/release/examples/round_trip box 1000
//! valgrind --tool=callgrind target/release/examples/round_trip box 101000
//! ```

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

type Block = [u64; 8];

/// Where anybody might look at a block, so that no compiler leaves it out.
static SEEN: AtomicPtr<Block> = AtomicPtr::new(null_mut());

#[repr(align(64))]
struct Line(Block);

fn plain_box() {
    let mut block = Box::new([7; 8]);
    SEEN.store(&mut *block, Relaxed);
}

fn aligned_box() {
    let mut line = Box::new(Line([7; 8]));
    SEEN.store(&mut line.0, Relaxed);
}

fn main() {
    let (what, rounds) = (std::env::args().nth(1), std::env::args().nth(2));
    let rounds: u64 = rounds.and_then(|count| count.parse().ok()).unwrap_or(1);
    match what.as_deref() {
        Some("box") => (0..rounds).for_each(|_| plain_box()),
        Some("aligned") => (0..rounds).for_each(|_| aligned_box()),
        _ => println!("box or aligned? And how many rounds?"),
    }
}
