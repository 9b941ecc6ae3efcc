//! A heap profile that the program takes of itself, in a process of its own.

use std::fs::{remove_file, File};
use std::os::unix::io::AsRawFd;
use std::path::Path;

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

const BLOCK: usize = 16 << 20; // all blocks of this size are sampled

/// The bytes in use that the profile's first line has.
fn in_use() -> usize {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profile.heap");
    let file = File::create(&path).unwrap();
    assert_eq!(hakmem::profile_write(file.as_raw_fd()), Ok(()));
    let text = std::fs::read_to_string(&path).unwrap();
    remove_file(&path).unwrap();
    assert!(text.contains("\nMAPPED_LIBRARIES:\n"));
    let line = text.strip_prefix("heap profile: ").unwrap();
    let (_, rest) = line.split_once(": ").unwrap();
    rest.split_once(" [").unwrap().0.parse().unwrap()
}

#[test]
fn a_profile() {
    assert_eq!(hakmem::profile_start(), Ok(()));
    let kept: Vec<Vec<u8>> = (0..8).map(|_| vec![1; BLOCK]).collect();
    assert!(in_use() >= 8 * BLOCK);
    assert_eq!(hakmem::profile_stop(), Ok(()));
    drop(kept);
    assert!(in_use() < BLOCK);
    assert!(hakmem::profile_write(-1).is_err());
}
