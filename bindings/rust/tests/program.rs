//! A program of threads and collections whose every allocation is hakmem's, with checked content;
//! at the end the heap is whole and the memory is back.

use std::collections::{BTreeMap, HashMap};
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::thread;

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

const THREADS: u64 = 8;

/// Numbers that look random and come again with the same seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Bytes that tell by themselves whether they are whole.
struct Parcel {
    seed: u64,
    bytes: Vec<u8>,
}

impl Parcel {
    fn new(seed: u64, length: usize) -> Parcel {
        let mut numbers = Numbers(seed);
        Parcel {
            seed,
            bytes: (0..length).map(|_| numbers.next() as u8).collect(),
        }
    }

    fn check(&self) {
        let mut numbers = Numbers(self.seed);
        assert!(self.bytes.iter().all(|&byte| byte == numbers.next() as u8));
    }
}

/// Mostly small, some large, few huge.
fn some_length(numbers: &mut Numbers) -> usize {
    let most = match numbers.below(1000) {
        0 => 4 << 20,
        1..=20 => 256 << 10,
        21..=200 => 8 << 10,
        _ => 256,
    };
    numbers.below(most) as usize
}

/// Each thread sends parcels to all others, who check and free them.
fn exchange(numbers: &mut Numbers, others: &[mpsc::Sender<Parcel>], mine: &mpsc::Receiver<Parcel>) {
    for _ in 0..500 {
        let parcel = Parcel::new(numbers.next(), some_length(numbers));
        others[numbers.below(THREADS) as usize]
            .send(parcel)
            .unwrap();
        while let Ok(parcel) = mine.try_recv() {
            parcel.check();
        }
    }
}

fn maps(numbers: &mut Numbers) {
    let mut by_hash: HashMap<String, Vec<u64>> = HashMap::new();
    let mut by_order: BTreeMap<u64, String> = BTreeMap::new();
    for _ in 0..5000 {
        let key = numbers.below(1000);
        by_hash.entry(format!("key {key}")).or_default().push(key);
        by_order.insert(key, key.to_string().repeat(key as usize % 7 + 1));
        if numbers.below(3) == 0 {
            let gone = numbers.below(1000);
            by_hash.remove(&format!("key {gone}"));
            by_order.remove(&gone);
        }
    }
    for (name, keys) in &by_hash {
        assert!(keys.iter().all(|key| *name == format!("key {key}")));
    }
    for (key, text) in &by_order {
        assert_eq!(*text, key.to_string().repeat(*key as usize % 7 + 1));
    }
}

/// From nothing to 16 MiB and back, through every kind of block.
fn growing() {
    let mut vec = Vec::new();
    for i in 0..2_u64 << 20 {
        vec.push(i);
    }
    while !vec.is_empty() {
        assert!(vec.iter().enumerate().all(|(i, &value)| value == i as u64));
        vec.truncate(vec.len() / 3);
        vec.shrink_to_fit();
    }
}

#[repr(align(64))]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line([u64; 3]);

#[repr(align(8192))]
struct Pages(u8);

fn over_aligned() {
    let mut lines = Vec::new();
    for i in 0..20_000 {
        lines.push(Line([i; 3]));
        assert_eq!(lines.as_ptr() as usize % 64, 0);
    }
    assert!(lines
        .iter()
        .enumerate()
        .all(|(i, line)| line.0 == [i as u64; 3]));
    let pages: Vec<_> = (0..20).map(|i| Box::new(Pages(i))).collect();
    for (i, page) in pages.iter().enumerate() {
        assert_eq!(&**page as *const Pages as usize % 8192, 0);
        assert_eq!(page.0, i as u8);
    }
}

/// The thread that drops it last frees what another thread allocated.
fn shared(numbers: &mut Numbers, slots: &[Mutex<Option<Arc<Parcel>>>]) {
    for _ in 0..500 {
        let slot = &slots[numbers.below(slots.len() as u64) as usize];
        let parcel = Arc::new(Parcel::new(numbers.next(), some_length(numbers) % 5000));
        let before = slot.lock().unwrap().replace(Arc::clone(&parcel));
        parcel.check();
        if let Some(before) = before {
            before.check();
        }
    }
}

fn work() {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
    let slots: Arc<Vec<_>> = Arc::new((0..16).map(|_| Mutex::new(None)).collect());
    let together = Arc::new(Barrier::new(THREADS as usize));
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(number, mine)| {
            let (others, slots, together) = (senders.clone(), slots.clone(), together.clone());
            thread::spawn(move || {
                let mut numbers = Numbers(number as u64);
                together.wait();
                exchange(&mut numbers, &others, &mine);
                drop(others);
                maps(&mut numbers);
                growing();
                over_aligned();
                shared(&mut numbers, &slots);
                mine.iter().for_each(|parcel| parcel.check());
            })
        })
        .collect();
    drop(senders);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn threads_and_collections() {
    work(); // what the standard library keeps for good is there now
    let before = hakmem::stats();
    work();
    let after = hakmem::stats();
    assert_eq!(hakmem::check(), Some(0));

    assert!(after.refills > before.refills && after.flushes > before.flushes);
    assert!(
        after.mapped_most >= 16 << 20,
        "a vector of 16 MiB: {after:?}"
    );
    assert!(
        after.program < before.program + (64 << 10),
        "not freed: {before:?} {after:?}"
    );
    assert_eq!(after.huge_blocks, before.huge_blocks);

    hakmem::purge();
    let purged = hakmem::stats();
    let idle = purged.thread_caches + purged.transfer + purged.retained + purged.kept;
    assert!(idle < 1 << 20, "not given back: {purged:?}");
    let all = purged.program
        + purged.thread_caches
        + purged.transfer
        + purged.free_in_slabs
        + purged.rest
        + purged.retained
        + purged.untouched
        + purged.kept
        + purged.metadata
        + purged.map;
    assert_eq!(all, purged.mapped);
}
