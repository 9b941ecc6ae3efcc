//! Heap profiles: which code allocates memory.

use crate::ffi;

/// Starts the heap profile, as the option `profile` does: while it is on, one block in many is
/// sampled. The error is a number of `errno`: `EAGAIN` if there is no memory for the profile, if
/// the kernel's pages are larger than 4 KiB, or while another thread forks.
///
/// With the feature `system` a profile has the call stacks that allocated the sampled blocks.
/// Without it, a profile has only sizes, because hakmem is compiled into the program.
///
/// It also lets the peak and the count of allocations that [`profile_write`] writes begin anew, and
/// may be called while the profile is on.
///
/// ```
/// hakmem::profile_start().unwrap();
/// let block = vec![1_u8; 1 << 20];
/// assert_eq!(hakmem::profile_write(2), Ok(())); // to standard error
/// hakmem::profile_stop().unwrap();
/// drop(block);
/// ```
pub fn profile_start() -> Result<(), i32> {
    // SAFETY: may be called by any thread at any time.
    result(unsafe { ffi::hakmem_profile_start() })
}

/// Stops the heap profile. A block that was sampled stays in the profile until it is freed. The
/// errors are those of [`profile_start`].
pub fn profile_stop() -> Result<(), i32> {
    // SAFETY: may be called by any thread at any time.
    result(unsafe { ffi::hakmem_profile_stop() })
}

/// Writes the heap profile to a file descriptor, in the text format of gperftools, which
/// `hakmem profile` and pprof read. Allocates nothing. The error is a number of `errno`: `EBUSY`
/// while another thread writes the profile, or the error of the file descriptor.
pub fn profile_write(fd: i32) -> Result<(), i32> {
    // SAFETY: may be called by any thread at any time, with any number.
    result(unsafe { ffi::hakmem_profile_write(fd) })
}

/// Marks this moment of the program by a name, which `hakmem trace`, heap profiles and
/// `hakmem exporter` show. The first 39 bytes count. A name with a zero byte ends before it.
///
/// ```
/// hakmem::mark("loaded");
/// ```
pub fn mark(name: &str) {
    let mut bytes = [0_u8; 40]; // a zero stays at the end
    let count = name.len().min(bytes.len() - 1);
    bytes[..count].copy_from_slice(&name.as_bytes()[..count]);
    // SAFETY: may be called by any thread at any time, with a name that ends with a zero.
    unsafe { ffi::hakmem_mark(bytes.as_ptr()) }
}

fn result(error: i32) -> Result<(), i32> {
    match error {
        0 => Ok(()),
        _ => Err(error),
    }
}
