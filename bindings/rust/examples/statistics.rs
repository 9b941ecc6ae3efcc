//! Where the memory of a program is, while it works and after: `cargo run --example statistics`.

use std::collections::HashMap;
use std::thread;

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

fn show(when: &str) {
    let stats = hakmem::stats();
    let row =
        |what: &str, bytes: usize| println!("  {what:<26} {:>9.1} KiB", bytes as f64 / 1024.0);
    println!("{when}");
    row("the program's blocks", stats.program);
    row("threads' caches", stats.thread_caches + stats.transfer);
    row("free blocks in slabs", stats.free_in_slabs);
    row("kept for the next use", stats.retained + stats.kept);
    row("hakmem's own", stats.metadata);
    println!(
        "  threads with a cache {}, blocks above 2 MiB {}",
        stats.threads, stats.huge_blocks
    );
}

fn count_words(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for word in text.split(' ') {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}

fn main() {
    let (major, minor, patch) = hakmem::version();
    println!("hakmem {major}.{minor}.{patch}");
    show("at the start");

    let words: Vec<String> = (0..400_000)
        .map(|i| format!("word{}", i % 30_000))
        .collect();
    show("with 400,000 words");

    let text = words.join(" ");
    drop(words);
    show("with a text of them instead");

    let counts = thread::spawn({
        let text = text.clone();
        move || count_words(&text)
    });
    let counts = counts.join().unwrap();
    assert_eq!(counts.len(), 30_000);
    show("with the words counted by another thread");

    drop((text, counts));
    show("all dropped");
    println!("purge: {} KiB may have gone back", hakmem::purge() / 1024);
    show("purged");
    println!("broken rules in the heap: {:?}", hakmem::check());
}
