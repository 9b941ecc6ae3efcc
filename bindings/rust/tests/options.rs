//! Options from the environment, and the reports they switch on: each needs a process of its own, so
//! the test program starts itself again for one of its ignored tests.

use std::alloc::{dealloc, Layout};
use std::env;
use std::process::{Command, Output};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

fn again(test: &str, options: &[(&str, &str)]) -> (Output, String) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", test])
        .envs(options.iter().copied())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, errors)
}

#[test]
fn an_option_has_the_value_of_the_environment() {
    let (output, errors) = again("child_with_options", &[("HAKMEM_PROFILE_SAMPLES", "1234")]);
    assert!(output.status.success(), "{errors}");
    assert_ne!(hakmem::option("profile_samples"), Some(1234));
}

#[test]
#[ignore = "started by another test"]
fn child_with_options() {
    assert_eq!(hakmem::option("profile_samples"), Some(1234));
    assert_eq!(hakmem::option("PROFILE_SAMPLES"), Some(1234));
}

#[test]
fn no_such_option() {
    assert_eq!(hakmem::option(""), None);
    assert_eq!(hakmem::option("profile_samples\0"), None);
    assert_eq!(hakmem::option(&"profile_samples".repeat(100)), None);
}

const CHECKED: [(&str, &str); 2] = [("HAKMEM_CHECK_FREES", "1"), ("HAKMEM_CHECK_SIZES", "1")];

#[test]
fn a_wrong_layout_is_reported() {
    let (output, errors) = again("child_with_a_wrong_layout", &CHECKED);
    assert!(!output.status.success());
    assert!(errors.contains("sized free"), "{errors}");
}

#[test]
#[ignore = "started by another test"]
fn child_with_a_wrong_layout() {
    let block = Box::into_raw(Box::new([0_u64; 100]));
    unsafe { dealloc(block.cast(), Layout::new::<[u64; 5]>()) };
}

/// What the crate and the standard library do with sizes is right by that check.
#[test]
fn right_layouts_are_not_reported() {
    let (output, errors) = again("child_with_right_layouts", &CHECKED);
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains("hakmem"), "{errors}");
}

#[repr(align(128))]
#[derive(Clone, Debug, PartialEq)]
struct Wide(u8);

#[test]
#[ignore = "started by another test"]
fn child_with_right_layouts() {
    for size in (1..3000).chain((3000..3_000_000).step_by(99_991)) {
        let mut vec = vec![1_u8; size];
        vec.resize(size * 3 / 2, 2);
        vec.shrink_to_fit();
        vec.truncate(size / 3);
        drop(vec.into_boxed_slice());
        let mut wide = vec![Wide(1); size / 128 + 1];
        wide.push(Wide(2));
        wide.shrink_to_fit();
        wide.truncate(1);
        assert_eq!(wide, [Wide(1)]);
        drop(wide.into_boxed_slice());
    }
    assert_eq!(hakmem::check(), Some(0));
}

#[test]
fn a_double_free_is_reported() {
    let (output, errors) = again("child_with_a_double_free", &[]);
    assert!(!output.status.success());
    assert!(
        errors.contains("hakmem") && errors.contains("free"),
        "{errors}"
    );
}

#[test]
#[ignore = "started by another test"]
fn child_with_a_double_free() {
    let block = Box::into_raw(Box::new([0_u8; 1000]));
    unsafe {
        drop(Box::from_raw(block));
        drop(Box::from_raw(block));
    }
}
