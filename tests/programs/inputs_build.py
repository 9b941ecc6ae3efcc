"""Inputs of the cases that build programs, all made from seeds."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from tests.programs import inputs
from tests.programs.inputs import WORDS

CXX_HEADER = """
#ifndef COMMON_H
#define COMMON_H
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
template <int N> struct node {
    std::map<std::string, node<N - 1>> kids;
    std::variant<int, std::string, std::vector<int>> value;
};
template <> struct node<0> { std::shared_ptr<std::string> leaf; };
template <int N> constexpr int fib() { return fib<N - 1>() + fib<N - 2>(); }
template <> constexpr int fib<1>() { return 1; }
template <> constexpr int fib<0>() { return 0; }
template <typename... T> std::string join(const T &...part)
{
    std::ostringstream out;
    ((out << part << ' '), ...);
    return out.str();
}
#endif
"""


def cxx_units(folder: Path, units: int) -> None:
    """A header worth precompiling, and units that make much of its templates."""
    (folder / "common.h").write_text(CXX_HEADER)
    rng = random.Random(40)
    for unit in range(units):
        keys = ", ".join(f'{{"{rng.choice(WORDS)}{n}", {n}}}' for n in range(60))
        tuples = "\n".join(
            f"    sum += std::get<{n}>(std::make_tuple({', '.join(map(str, range(n + 1)))}));\n"
            f'    text += join({n}, "{rng.choice(WORDS)}", {n}.5, std::string("x"), \'{n % 10}\');'
            for n in range(8)
        )
        (folder / f"unit_{unit}.cc").write_text(
            f'#include "common.h"\n'
            f"static std::unordered_map<std::string, int> table = {{{keys}}};\n"
            f"long unit_{unit}(std::string &text)\n{{\n"
            f"    node<{8 + unit}> tree;\n    long sum = fib<{20 + unit}>();\n"
            f"{tuples}\n"
            f'    std::regex words("([a-z]+)([0-9]*{unit})");\n'
            f"    std::set<std::string> keys;\n"
            f"    for (auto &e : table)\n"
            f"        if (std::regex_match(e.first, words)) keys.insert(e.first);\n"
            f"    for (auto &k : keys) text += k, sum += table[k];\n"
            f"    return sum + (long)tree.kids.size();\n}}\n"
        )
    calls = "\n".join(f"    sum += unit_{unit}(text);" for unit in range(units))
    declared = "\n".join(f"long unit_{unit}(std::string &);" for unit in range(units))
    (folder / "main.cc").write_text(
        f'#include "common.h"\n{declared}\nint main()\n{{\n    std::string text;\n'
        f"    long sum = 0;\n{calls}\n    std::cout << sum << ' ' << text << '\\n';\n}}\n"
    )


def objects(folder: Path, files: int, symbols: int) -> None:
    """Object files for a linker: `files` times `symbols` sections, each pointing into others,
    and strings that can be merged. Data directives alone, so any processor will do."""
    rng = random.Random(41)
    for number in range(files):
        lines = []
        for symbol in range(symbols):
            name = f"{WORDS[symbol % len(WORDS)]}_{number}_{symbol}"
            # Two thirds of the symbols are reached from none, for --gc-sections to find.
            target = rng.randrange(0, symbols, 3)
            other = f"{WORDS[target % len(WORDS)]}_{rng.randrange(files)}_{target}"
            lines += [
                f'.section .data.rel.{name},"aw"', ".balign 8", f".globl {name}", f"{name}:",
                f".8byte {other}", f".8byte text_{symbol}", f".8byte {rng.randrange(1 << 30)}",
                '.section .rodata.str1.1,"aMS",%progbits,1', f"text_{symbol}:",
                f'.asciz "{inputs.sentence(rng, 5)}"',
            ]  # fmt: skip
        lines.append('.section .note.GNU-stack,"",%progbits')
        source = folder / f"part_{number}.s"
        source.write_text("\n".join(lines) + "\n")
        subprocess.run(["as", source, "-o", source.with_suffix(".o")], check=True)
        source.unlink()
    (folder / "main.c").write_text(
        "#include <stdio.h>\n"
        "struct entry { struct entry *next; const char *text; long value; };\n"
        f"extern struct entry {WORDS[0]}_0_0;\n"
        "int main(void)\n{\n    unsigned long sum = 0;\n"
        f"    struct entry *at = &{WORDS[0]}_0_0;\n"
        "    for (int i = 0; i < 100000; i++, at = at->next)\n"
        "        sum = sum * 31 + at->value + at->text[0];\n"
        '    printf("%lx %s\\n", sum, at->text);\n    return 0;\n}\n'
    )
    subprocess.run(["gcc", "-O1", "-fPIC", "-c", "main.c", "-o", "main.o"], cwd=folder, check=True)


RUST_MAIN = """
use std::collections::{BTreeMap, HashMap};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
mod kinds;
fn main() {
    let table: Arc<Mutex<HashMap<String, Vec<u64>>>> = Arc::new(Mutex::new(HashMap::new()));
    let (send, receive) = mpsc::channel::<Box<(usize, String)>>();
    let workers: Vec<_> = (0..4usize)
        .map(|id| {
            let (table, send) = (Arc::clone(&table), send.clone());
            thread::spawn(move || {
                for n in 0..60_000usize {
                    let key = format!("{}-{}", (n * 7 + id) % 5000, id);
                    table.lock().unwrap().entry(key.clone()).or_default().push(n as u64);
                    if n % 4 == 0 {
                        send.send(Box::new((n, key + &"x".repeat(n % 300)))).unwrap();
                    }
                }
            })
        })
        .collect();
    drop(send);
    let mut seen: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for parcel in receive {
        seen.entry(parcel.0 % 1000).or_default().push(parcel.1);
    }
    for worker in workers {
        worker.join().unwrap();
    }
    let bytes: usize = seen.values().flatten().map(|s| s.len()).sum();
    let total: u64 = table.lock().unwrap().values().flatten().sum();
    println!("{} {} {} {}", seen.len(), bytes, table.lock().unwrap().len(), total);
    println!("{}", kinds::all());
}
"""


def rust(folder: Path, kinds: int) -> None:
    """A program of four threads that share a map and send boxes, with many derived types."""
    (folder / "main.rs").write_text(RUST_MAIN)
    rng = random.Random(42)
    lines = []
    for kind in range(kinds):
        fields = ", ".join(
            f"{rng.choice(WORDS)}_{n}: {rng.choice(('u32', 'String', 'Vec<u8>', 'Option<i64>'))}"
            for n in range(8)
        )
        lines.append(
            "#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]\n"
            f"pub struct Kind{kind} {{ {fields} }}"
        )
    calls = "\n".join(
        f'    text += &format!("{{:?}}", Kind{kind}::default().clone());' for kind in range(kinds)
    )
    lines.append(
        f"pub fn all() -> usize {{\n    let mut text = String::new();\n{calls}\n    text.len()\n}}"
    )
    (folder / "kinds.rs").write_text("\n".join(lines) + "\n")


GO_MAIN = """
package main

/*
#include <stdlib.h>
#include <string.h>
struct item { struct item *next; size_t size; char text[]; };
static struct item *push(struct item *head, size_t size, int fill)
{
    struct item *item = malloc(sizeof *item + size);
    item->next = head;
    item->size = size;
    memset(item->text, fill, size);
    return item;
}
static unsigned long drop(struct item *head)
{
    unsigned long sum = 0;
    while (head) {
        struct item *next = head->next;
        sum += head->size * (unsigned char)head->text[head->size / 2];
        free(head);
        head = next;
    }
    return sum;
}
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

func main() {
	var group sync.WaitGroup
	sums := make([]uint64, 16)
	total := uint64(0)
	handed := make(chan *C.struct_item, 64)
	for id := range sums {
		group.Add(1)
		go func(id int) {
			defer group.Done()
			for round := 0; round < 40; round++ {
				var head *C.struct_item
				for n := 0; n < 400; n++ {
					head = C.push(head, C.size_t(1+(n*37+id)%900), C.int(n%200))
				}
				handed <- head // another goroutine, on whatever thread, frees it
				sums[id] += uint64(C.drop(<-handed))
				text := C.CString(strings.Repeat("go", round))
				sums[id] += uint64(C.strlen(text))
				C.free(unsafe.Pointer(text))
			}
		}(id)
	}
	group.Wait()
	for _, sum := range sums {
		total += sum
	}
	fmt.Println(len(sums), total)
}
"""


def go(folder: Path) -> None:
    (folder / "go.mod").write_text("module example.org/cgo\n\ngo 1.19\n")
    (folder / "main.go").write_text(GO_MAIN)


def cmake(folder: Path, libraries: int) -> None:
    """A project of libraries that use one another, a configured header, checks and tests."""
    rng = random.Random(43)
    lines = [
        "cmake_minimum_required(VERSION 3.18)", "project(generated C CXX)", "include(CTest)",
        'set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")',
        "include(CheckSymbolExists)", "include(CheckIncludeFile)", "include(CheckTypeSize)",
        "check_symbol_exists(snprintf stdio.h HAVE_SNPRINTF)",
        "check_symbol_exists(no_such_thing stdio.h HAVE_NONE)",
        "check_include_file(sys/mman.h HAVE_MMAN)", 'check_type_size("long double" LONG_DOUBLE)',
        "foreach(outer RANGE 300)\n  foreach(inner RANGE 60)\n"
        "    list(APPEND numbers ${outer}${inner})\n  endforeach()\nendforeach()",
        "list(REMOVE_DUPLICATES numbers)\nlist(SORT numbers)\nlist(LENGTH numbers how_many)",
        'string(REGEX REPLACE "([0-9])7" "<\\\\1>" text "${numbers}")',
        "string(SHA256 sum \"${text}\")\nmessage(STATUS \"${how_many} numbers, ${sum}\")",
        "configure_file(config.h.in config.h)", "include_directories(${CMAKE_BINARY_DIR})",
    ]  # fmt: skip
    (folder / "config.h.in").write_text(
        "#cmakedefine HAVE_SNPRINTF\n#cmakedefine HAVE_NONE\n#cmakedefine HAVE_MMAN\n"
        "#define NUMBERS @how_many@\n#define WIDE @LONG_DOUBLE@\n"
    )
    shared = []
    for number in range(libraries):
        name = f"part{number}"
        (folder / f"{name}.c").write_text(
            '#include "config.h"\n#include "generated.h"\n'
            + "".join(f"int {name}_{n}(int x) {{ return x * {n} + NUMBERS; }}\n" for n in range(60))
            + f"int {name}(int x) {{ return {name}_7(x) + GENERATED + (int)WIDE; }}\n"
        )
        kind = rng.choice(("STATIC", "SHARED", "OBJECT"))
        shared += [name] if kind == "SHARED" else []
        lines.append(f"add_library({name} {kind} {name}.c generated.h)")
    (folder / "maker.cc").write_text(
        "#include <iostream>\n#include <string>\nint main() {\n"
        '    std::cout << std::string("#define GENERATED ") << 42 << "\\n";\n}\n'
    )
    names = " ".join(f"part{number}" for number in range(libraries))
    lines += [
        "add_executable(maker maker.cc)",
        "add_custom_command(OUTPUT generated.h COMMAND maker > generated.h DEPENDS maker)",
        "add_executable(main main.c)", f"target_link_libraries(main PRIVATE {names})",
        f"install(TARGETS main {' '.join(shared)} RUNTIME DESTINATION bin LIBRARY DESTINATION lib)",
        "foreach(n RANGE 20)\n  add_test(NAME run_${n} COMMAND main)\nendforeach()",
    ]  # fmt: skip
    (folder / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    (folder / "main.c").write_text(
        "#include <stdio.h>\n"
        + "".join(f"int part{number}(int);\n" for number in range(libraries))
        + "int main(void)\n{\n    int sum = 0;\n"
        + "".join(f"    sum += part{number}({number});\n" for number in range(libraries))
        + '    printf("%d\\n", sum);\n    return 0;\n}\n'
    )


def makefile(file: Path, targets: int) -> None:
    """Rules made by eval from lists of words, patterns, and files written by make itself."""
    file.write_text(
        "words := " + " ".join(WORDS) + "\n"
        f"numbers := $(shell seq {targets})\n"
        "names := $(patsubst %,target_%.out,$(numbers))\n"
        "squares := $(foreach a,$(words),$(foreach b,$(words),$(a)-$(b)))\n"
        "long := $(sort $(foreach c,$(words),$(addsuffix /$c,$(squares))))\n"
        "define rule\n$(1): $(2) ; $$(file >$$@,$$@ needs $$^ and $(words $(long)))\nendef\n"
        "previous :=\n"
        "$(foreach t,$(names),$(eval $(call rule,$t,$(previous)))$(eval previous := $t))\n"
        "all: $(names) sums.txt ; $(info $(lastword $(long)) $(filter %-leaf/root,$(long)))\n"
        "sums.txt: $(names:.out=.sum) ; $(file >$@,$^)\n"
        "%.sum: %.out ; @cksum <$< >$@\n"
        ".DEFAULT_GOAL := all\n"
    )


def protobuf(folder: Path, files: int) -> None:
    """Schemas that import one another, of messages with fields of all kinds."""
    rng = random.Random(44)
    scalars = ("int32", "uint64", "string", "bytes", "double", "bool", "sint32", "fixed64")
    for number in range(files):
        lines = ['syntax = "proto3";', f"package generated.part{number};"]
        lines += [f'import "part{n}.proto";' for n in range(max(0, number - 1), number)]
        for message in range(40):
            lines.append(f"message M{message} {{ enum E {{ NONE = 0; SOME = {message + 1}; }}")
            for field in range(1, 16):
                kind = rng.choice(scalars)
                if message and field % 4 == 0:
                    kind = f"M{rng.randrange(message)}"
                if number and field % 7 == 0:
                    kind = f".generated.part{number - 1}.M{rng.randrange(40)}"
                prefix = rng.choice(("", "repeated ", "optional "))
                if field % 5 == 0:
                    prefix, kind = "", f"map<string, {kind}>"
                lines.append(f"  {prefix}{kind} {rng.choice(WORDS)}_{field} = {field};")
            lines.append("  oneof choice { E a = 20; string b = 21; } reserved 30 to 40; }")
        lines.append(f"service S{number} {{")
        lines += [f"  rpc Call{n}(M{n}) returns (stream M{n + 1});" for n in range(30)]
        (folder / f"part{number}.proto").write_text("\n".join([*lines, "}"]) + "\n")


def grammar(file: Path, rules: int) -> None:
    """A grammar of operators and statements, without conflicts."""
    names = [f"{WORDS[n % len(WORDS)].upper()}{n}" for n in range(rules)]
    lines = ["%define parse.error verbose", "%token NUMBER NAME"]
    lines += [f"%token {name}" for name in names]
    lines += [f"%left '{c}'" for c in "|&=<+*"]
    lines += ["%%", "all: | all statement ';' ;", "statement: expression"]
    lines += [f"  | {name} '(' list ')' {names[n - 1]} expression" for n, name in enumerate(names)]
    lines += [";", "list: expression | list ',' expression ;", "expression: NUMBER | NAME"]
    lines += [f"  | expression '{c}' expression" for c in "|&=<+*"]
    lines += [f"  | {name} expression '?'" for name in names] + ["  | '(' expression ')' ;", "%%"]
    file.write_text("\n".join(lines) + "\n")
