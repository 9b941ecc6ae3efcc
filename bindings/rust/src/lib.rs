#![doc = include_str!("../README.md")]
#![no_std]
#![warn(missing_docs)]

mod alloc;
mod defrag;
mod ffi;
mod heap;
mod profile;

pub use alloc::Hakmem;
pub use defrag::{defrag, defrag_free, defrag_gain, defrag_hint, defrag_malloc};
pub use heap::{
    check, check_frees, good_size, on_soft_limit, option, purge, set_option, sheet, stats,
    usable_size, version, SheetFormat, Stats,
};
pub use profile::{mark, profile_start, profile_stop, profile_write};
