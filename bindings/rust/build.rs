//! Makes libhakmem from its C sources, with `hakmem_` names alone unless the feature `override` asks
//! for malloc's too; or finds the installed one (feature `system`).

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// As src/CMakeLists.txt has them. Symbols are changed in the object, so it must hold code even
/// where CFLAGS ask for the link-time kind; and compilers know what malloc does, and would leave
/// calls of it out.
const FLAGS: [&str; 9] = [
    "-std=gnu11",
    "-fno-lto",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-semantic-interposition",
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
];

fn main() {
    let wrong_target = target("OS") != "linux" || target("POINTER_WIDTH") != "64";
    if wrong_target {
        fail(
            "hakmem runs on Linux, on 64-bit processors: choose another allocator for this target",
        );
    }
    println!("cargo:rerun-if-changed=build.rs");
    if asked_for("SYSTEM") {
        find_installed();
    } else {
        compile();
    }
}

fn target(what: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

fn asked_for(feature: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
}

fn fail(message: &str) -> ! {
    eprintln!("hakmem: {message}");
    std::process::exit(1)
}

fn find_installed() {
    for variable in [
        "PKG_CONFIG",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG_LIBDIR",
        "PKG_CONFIG_SYSROOT_DIR",
    ] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let wanted = concat!("hakmem >= ", env!("CARGO_PKG_VERSION"));
    let mut ask = Command::new(env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into()));
    let answer = match ask.args(["--libs", wanted]).output() {
        Ok(answer) if answer.status.success() => answer.stdout,
        other => fail(&format!(
            "feature `system`: `pkg-config --libs '{wanted}'` finds nothing; install hakmem, name the \
             folder of its hakmem.pc in PKG_CONFIG_PATH, or leave the feature out ({other:?})"
        )),
    };
    for word in String::from_utf8_lossy(&answer).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}

fn compile() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let (sources, include) = (here.join("c/src"), here.join("c/include"));
    println!("cargo:rerun-if-changed={}", sources.display());
    println!("cargo:rerun-if-changed={}", include.display());

    let mut build = cc::Build::new();
    // Optimised in a debug build too: there the allocator is not what is being debugged.
    build
        .opt_level(3)
        .define("NDEBUG", None)
        .force_frame_pointer(false)
        .pic(true)
        .warnings(false)
        .include(&sources)
        .include(&include);
    for flag in FLAGS {
        build.flag(flag);
    }
    if asked_for("OVERRIDE") {
        build.define("HAKMEM_OVERRIDE", None);
    }
    let parts = compile_side_by_side(build.cargo_metadata(false), c_files(&sources));

    let whole = out.join("hakmem.o");
    let archives: Vec<PathBuf> = parts.iter().map(|part| out.join(part)).collect();
    merge(&build, &archives, &whole);
    hide_inner_names(&build, &whole);
    cc::Build::new().object(&whole).compile("hakmem");
    println!("cargo:include={}", include.display());
}

/// One archive for each job that cargo allows. `cc` does it with its feature `parallel`, which needs
/// two crates more.
fn compile_side_by_side(build: &cc::Build, files: Vec<PathBuf>) -> Vec<String> {
    let jobs = env::var("NUM_JOBS").map_or(1, |jobs| jobs.parse().unwrap_or(1));
    thread::scope(|scope| {
        let compile = |job: usize| {
            let mut part = build.clone();
            part.files(files.iter().skip(job).step_by(jobs));
            scope.spawn(move || {
                part.compile(&format!("hakmem_part_{job}"));
                format!("libhakmem_part_{job}.a")
            })
        };
        let started: Vec<_> = (0..jobs.min(files.len())).map(compile).collect();
        let ended = started.into_iter().map(|one| one.join().expect("compiled"));
        ended.collect()
    })
}

/// All that lie below.
fn c_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the crate's C sources can be read") {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(c_files(&path));
        } else if path.extension() == Some(OsStr::new("c")) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// One object of all: what refers to one function gets the whole, malloc with it where that is
/// overridden.
fn merge(build: &cc::Build, archives: &[PathBuf], object: &Path) {
    let mut link = build.get_compiler().to_command();
    link.args(["-r", "-nostdlib", "-o"])
        .arg(object)
        .arg("-Wl,--whole-archive")
        .args(archives);
    if !link.status().map_or(false, |status| status.success()) {
        fail(&format!(
            "the objects could not be linked into one: {link:?}"
        ));
    }
}

/// Makes names that are hidden in the library local, since a linker knows of no hidden names between
/// static libraries: a program whose C parts have a `policy` or `lock_wait` of their own would get
/// one for the other.
fn hide_inner_names(build: &cc::Build, object: &Path) {
    println!("cargo:rerun-if-env-changed=OBJCOPY");
    let mut programs = Vec::new();
    programs.extend(env::var_os("OBJCOPY").map(PathBuf::from));
    programs.extend(objcopy_beside(build.get_compiler().path()));
    programs.extend(["objcopy", "llvm-objcopy", "rust-objcopy"].map(PathBuf::from));
    let done = programs.iter().any(|program| {
        let mut hide = Command::new(program);
        hide.arg("--localize-hidden").arg(object);
        hide.status().map_or(false, |status| status.success())
    });
    if !done {
        fail(
            "no objcopy works here: install binutils or llvm, or set OBJCOPY to one for the target",
        );
    }
}

/// aarch64-linux-gnu-objcopy for aarch64-linux-gnu-gcc.
fn objcopy_beside(compiler: &Path) -> Option<PathBuf> {
    let name = compiler.file_name()?.to_str()?;
    let (prefix, _) = name
        .rsplit_once("-gcc")
        .or_else(|| name.rsplit_once("-clang"))?;
    Some(compiler.with_file_name(format!("{prefix}-objcopy")))
}
