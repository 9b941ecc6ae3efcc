//! `Stats` mirrors `struct hakmem_stats` of `hakmem.h`: names, order, offsets and sizes of the members
//! are compared, as the two compilers see them.

use hakmem::Stats;
use std::env;
use std::fs;
use std::mem::{size_of, MaybeUninit};
use std::path::{Path, PathBuf};
use std::process::Command;

const WORD: usize = size_of::<usize>();

#[derive(Debug, PartialEq)]
struct Member {
    name: String,
    offset: usize,
    size: usize,
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c/include")
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut code = parts.next().unwrap().to_owned();
    for part in parts {
        code.push_str(part.split_once("*/").unwrap().1);
    }
    code
}

fn names_in_the_header() -> Vec<String> {
    let header = fs::read_to_string(include().join("hakmem/hakmem.h")).unwrap();
    let code = without_comments(&header);
    let (_, rest) = code.split_once("struct hakmem_stats {").unwrap();
    let (members, _) = rest.split_once('}').unwrap();
    let last_words = members
        .split(';')
        .filter_map(|m| m.split_whitespace().last());
    last_words.map(str::to_owned).collect()
}

/// Builds and runs a program in C, and returns what it prints.
fn output_of_c(source: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (folder.join("mirror.c"), folder.join("mirror"));
    fs::write(&file, source).unwrap();
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut build = Command::new(compiler);
    build
        .arg("-I")
        .arg(include())
        .arg("-o")
        .arg(&program)
        .arg(&file);
    assert!(build.status().unwrap().success(), "{build:?}");
    String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
}

/// The members in C, and the size of the whole.
fn members_in_c() -> (Vec<Member>, usize) {
    let mut source =
        "#include <hakmem/hakmem.h>\n#include <stddef.h>\nint main(void)\n{\n".to_owned();
    for name in names_in_the_header() {
        source += &format!(
            "    printf(\"{name} %zu %zu\\n\", offsetof(struct hakmem_stats, {name}),\n           \
             sizeof ((struct hakmem_stats *)0)->{name});\n"
        );
    }
    source += "    printf(\"all 0 %zu\\n\", sizeof(struct hakmem_stats));\n}\n";
    let mut members: Vec<Member> = output_of_c(&source).lines().map(member_of_line).collect();
    let all = members.pop().unwrap();
    (members, all.size)
}

fn member_of_line(line: &str) -> Member {
    let words: Vec<&str> = line.split(' ').collect();
    Member {
        name: words[0].to_owned(),
        offset: words[1].parse().unwrap(),
        size: words[2].parse().unwrap(),
    }
}

/// Each byte of a structure is the number of its word, from 1. `Debug` shows the members in their
/// order, and each value tells which word the member is.
fn members_in_rust() -> Vec<Member> {
    let mut stats = MaybeUninit::<Stats>::uninit();
    for at in 0..size_of::<Stats>() {
        // SAFETY: the byte is the structure's.
        unsafe {
            stats
                .as_mut_ptr()
                .cast::<u8>()
                .add(at)
                .write((at / WORD + 1) as u8)
        };
    }
    // SAFETY: the members are integers, for which all bytes are valid.
    let shown = format!("{:?}", unsafe { stats.assume_init() });
    let members = shown
        .strip_prefix("Stats { ")
        .and_then(|text| text.strip_suffix(" }"));
    members.unwrap().split(", ").map(member_of_value).collect()
}

fn member_of_value(shown: &str) -> Member {
    let (name, value) = shown.split_once(": ").unwrap();
    let value: usize = value.parse().unwrap();
    let word = value & 0xff;
    let repeated = word * (usize::MAX / 0xff);
    assert_eq!(value, repeated, "{name}: expected one whole word");
    Member {
        name: name.to_owned(),
        offset: (word - 1) * WORD,
        size: WORD,
    }
}

#[test]
fn the_statistics_are_those_of_the_header() {
    let (in_c, size) = members_in_c();
    let sum: usize = in_c.iter().map(|member| member.size).sum();
    assert_eq!(sum, size, "a member was not found in the header: {in_c:?}");
    assert_eq!(members_in_rust(), in_c);
    assert_eq!(size_of::<Stats>(), size);
}
