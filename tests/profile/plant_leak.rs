// Leaks 8 MiB in one function, and frees as much in another. The crate's build names hakmem as the
// global allocator; without it, blocks come from malloc.
#[cfg(feature = "hakmem")]
#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

#[inline(never)]
fn leaks(n: usize) -> &'static mut [u8] {
    let block = vec![1_u8; n]; // here: leaks
    Box::leak(block.into_boxed_slice())
}

#[inline(never)]
fn frees(n: usize) -> usize {
    let block = vec![2_u8; n];
    std::hint::black_box(&block).len()
}

fn main() {
    let mut sum = 0;
    for i in 0..512 {
        sum += usize::from(std::hint::black_box(leaks(16384))[i]);
        sum += frees(16384);
    }
    std::hint::black_box(sum);
}
