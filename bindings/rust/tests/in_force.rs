//! Who serves what: Rust's blocks are hakmem's; C's are libc's, unless the feature `override` says
//! otherwise.

use std::ffi::{c_void, CStr};
use std::os::raw::{c_char, c_int};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
    fn strdup(text: *const c_char) -> *mut c_char;
    fn free(p: *mut c_void);
}

const TEXT: &[u8] = b"a text for a block of its own\0";

/// The file that has the function `name`, as the loader binds it for everybody.
fn home_of(name: &[u8]) -> String {
    let mut info: DlInfo = unsafe { std::mem::zeroed() };
    unsafe {
        let everywhere = std::ptr::null_mut();
        let function = dlsym(everywhere, name.as_ptr().cast());
        assert_ne!(dladdr(function, &mut info), 0);
        CStr::from_ptr(info.file).to_string_lossy().into_owned()
    }
}

#[test]
fn a_box_is_a_block_of_hakmem() {
    const SIZE: usize = 24 << 20;
    let before = hakmem::stats();
    let block = vec![1_u8; SIZE];
    let with = hakmem::stats();
    assert!(unsafe { hakmem::usable_size(block.as_ptr()) } >= SIZE); // any other pointer ends here
    assert!(with.program >= before.program + SIZE / 2);
    assert_eq!(with.huge_blocks, before.huge_blocks + 1);
    drop(block);
    assert!(hakmem::stats().program < with.program - SIZE / 2);

    let small = Box::new(7_u64);
    assert_eq!(
        unsafe { hakmem::usable_size(&*small as *const u64 as *const u8) },
        16
    );
}

#[test]
#[cfg(not(any(feature = "override", feature = "system")))]
fn malloc_of_c_is_libcs() {
    for name in [
        &b"malloc\0"[..],
        b"free\0",
        b"realloc\0",
        b"posix_memalign\0",
    ] {
        let home = home_of(name);
        assert!(home.contains("libc.so"), "{name:?} is of {home}");
    }
    // And it works, beside hakmem.
    unsafe {
        let copy = strdup(TEXT.as_ptr().cast());
        assert_eq!(CStr::from_ptr(copy).to_bytes_with_nul(), TEXT);
        free(copy.cast());
    }
    assert_eq!(hakmem::check(), Some(0));
}

#[test]
#[cfg(any(feature = "override", feature = "system"))]
fn malloc_of_c_is_hakmems() {
    for name in [
        &b"malloc\0"[..],
        b"free\0",
        b"realloc\0",
        b"posix_memalign\0",
    ] {
        let home = home_of(name);
        assert!(!home.contains("libc.so"), "{name:?} is of {home}");
    }
    // A block that libc asked for.
    unsafe {
        let copy = strdup(TEXT.as_ptr().cast());
        assert!(hakmem::usable_size(copy as *const u8) >= TEXT.len());
        free(copy.cast());
    }
    assert_eq!(hakmem::check(), Some(0));
}

/// Names that hakmem has inside: a program may have them too.
#[no_mangle]
pub extern "C" fn slow_malloc() -> u32 {
    1
}
#[no_mangle]
#[allow(non_upper_case_globals)]
pub static policy: u32 = 2;

#[test]
fn inner_names_are_the_programs_to_use() {
    extern "C" {
        #[link_name = "slow_malloc"]
        fn mine() -> u32;
    }
    assert_eq!(unsafe { mine() }, 1);
    assert_eq!(policy, 2);
    assert!(hakmem::option("stack_bytes") > Some(2));
}

#[test]
fn the_version_is_the_crates() {
    let (major, minor, patch) = hakmem::version();
    assert_eq!(
        format!("{major}.{minor}.{patch}"),
        env!("CARGO_PKG_VERSION")
    );
}
