# The short way to everything; CMake (presets release, debug, tsan, ubsan, asan, fuzz, musl, aarch64)
# does the work.
.DEFAULT_GOAL := help
.PHONY: help setup build test test-yardstick test-rust test-musl test-cross test-elsewhere test-install fuzz \
	test-dist release about-test test-programs test-hardened test-swaps test-mutants test-docs deb dist demo lint lint-c lint-tidy \
	lint-python lint-shell lint-rust format bench judge golden-update layout-update clean
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
# One log for the steps of one make, those that it starts included.
ifndef STEPS_OF
export STEPS_OF := $(shell date +%s.%N)
endif

python := .venv/bin/python
interposers = $(python) -m pytest -q tests/platforms/test_interposers.py
jobs := $(shell nproc)
c_files = $(shell find src look replay include tests tools yardstick -name '*.[ch]' -o -name '*.cc')

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is needed: Debian packages, Python parts into .venv
	@tools/setup

build: ## build/release/libhakmem.so and what belongs to it
	@tools/setup build
	@tools/step "build: configuring build/release" cmake --preset release
	@tools/step "build: library, command, tests and benchmarks" cmake --build --preset release

test: about-test setup ## all tests, many with assertions and under ThreadSanitizer too, a few elsewhere, and lint
	@$(python) tools/everything.py

about-test:
	@echo "make test: installs compilers, Rust, qemu, valgrind, lint and Python parts where they are missing"
	@echo "(tools/setup says how many packages and MB before it begins; Python parts go into .venv), then builds"
	@echo "four presets and runs all tests: 11 to 35 minutes on 2 processors."

test-nightly: setup build ## all tests of what is shipped, those included that take long by nature
	HAKMEM_TESTS_NIGHTLY=1 ctest --preset release -j $(jobs)

test-yardstick: setup ## the tests of the benchmark system, yardstick/
	@$(python) tools/everything.py yardstick

test-elsewhere: setup ## a few of the tests with musl, and on AArch64 under qemu
	@$(python) tools/everything.py musl aarch64

test-rust: setup ## the Rust crate, and its build from what would be published
	@bindings/rust/run test

test-musl: setup ## unit, api and stress tests with musl
	@cmake --preset musl >/dev/null
	@cmake --build --preset musl
	ctest --preset musl -j $(jobs)
	$(interposers) --lib build/musl/libhakmem.so --compiler musl-gcc

test-cross: setup ## the same on AArch64 under qemu; with pages of 16 and 64 KiB; with 39 bits of address
	@cmake --preset aarch64 >/dev/null
	@cmake --build --preset aarch64
	ctest --preset aarch64
	QEMU_PAGESIZE=16384 ctest --preset aarch64 -j $(jobs) -LE stress
	QEMU_PAGESIZE=65536 ctest --preset aarch64 -j $(jobs) -LE stress
	QEMU_RESERVED_VA=0x8000000000 ctest --preset aarch64 -R '^(api_life|stress_names)'
	$(interposers) --lib build/aarch64/libhakmem.so --compiler aarch64-linux-gnu-gcc \
		--runner 'qemu-aarch64 -L /usr/aarch64-linux-gnu'

SECONDS ?= 60
fuzz: setup ## every fuzzer for a minute, or longer; goes on from what the last call found (SECONDS=900)
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz
	@status=0; for target in build/fuzz/tests/fuzz/fuzz_*[a-z] tests/fuzz/fuzz_*.py; do \
		$(python) tests/fuzz/run.py $$target --seconds $(SECONDS) || status=1; done; exit $$status

test-install: setup build ## in bare Debians: the packages, installed, used and purged; the README's installation, every command
	@tests/install/in_debian

test-docs: setup ## the documentation's commands, in Debians of their own that boot systemd
	@tests/docs/in_debian

deb: ## Debian packages, in build/deb
	@tools/deb

dist: setup ## a release, in build/dist: source, packages, wheel, crate, libraries, sums, contents, notes
	@$(python) -m tools.dist

test-dist: setup ## a release made twice, with the same bytes, and each file of it tried
	@tests/dist/in_clones

test-swaps: setup build ## wrong orders of accesses to shared words, each of which exploring must find
	$(python) -m tests.explore.swaps $(ARGS)

test-mutants: setup ## lines of src/ changed one at a time, against the quick tests (ARGS="--count 20", "--help")
	@$(python) -m tests.mutants.run $(ARGS)

test-programs: setup build ## all real programs with the library and without: docs/programs.md (ARGS="--resume")
	@mkdir -p build/programs
	@bash -o pipefail -c '$(python) tests/programs/run.py --lib build/release/libhakmem.so \
		--out build/programs --all --install --rounds 3 $(ARGS) 2>&1 | tee -a build/programs/log'; \
		status=$$?; \
		$(python) -m pytest -q tests/platforms/test_wrappers.py --lib build/release/libhakmem.so --install || status=1; \
		$(python) tests/programs/summary.py build/programs/results docs/programs.md && exit $$status

hardened := -o preset=hardened
guarded := $(hardened) -o guards_a_second=1000
test-hardened: setup build ## all real programs in a hardened heap: docs/programs-hardened.md (ARGS="--resume")
	@status=0; \
		for run in "hardened $(hardened)" "guarded $(guarded)"; do \
			$(python) tests/programs/run.py --lib build/release/libhakmem.so --all --install \
				--out build/programs-$$run $(ARGS) || status=1; \
		done; \
		$(python) tests/programs/summary.py build/programs-guarded/results \
			docs/programs-hardened.md --beside build/programs-hardened/results && exit $$status

demo: ## memory of redis and of a Python program, with the system's malloc and with hakmem
	@echo "make demo: installs a compiler, CMake, Python and redis where they are missing (100 MB on a bare Debian),"
	@echo "builds the library (a minute or two), and runs for one to two minutes. Nothing else is changed."
	@tools/setup demo
	@tools/step "build: configuring build/release" cmake --preset release
	@tools/step "build: the library" cmake --build --preset release --target hakmem_shared
	@$(python) tools/demo/demo.py --lib build/release/libhakmem.so

lint: lint-c lint-tidy lint-python lint-shell lint-rust ## format, clang-tidy, ruff, mypy, layers, shell scripts, cargo

lint-c: setup
	clang-format --dry-run -Werror $(c_files)

# One file for each run of clang-tidy: in a second one it takes every va_list for uninitialized. And
# each file once, with assertions: it is compiled for four libraries, and clang-tidy would go through
# it for each.
lint-tidy: setup
	@cmake --preset lint >/dev/null
	@$(python) tools/compile_commands.py build/lint/compile_commands.json build/lint/once
	@find src look replay -name '*.c' | sort | xargs -P $(jobs) -n 1 clang-tidy -p build/lint/once --quiet

lint-python: setup
	$(python) -m ruff check
	$(python) -m ruff format --check
	$(python) -m mypy $(wildcard conftest.py tools tests python yardstick)
	$(python) tools/check_layers.py

lint-shell: setup
	shellcheck tools/setup tools/step tools/deb .ci/run command/hakmem.in bindings/rust/run \
		tests/dist/in_clones tests/install/in_debian tests/install/in_debian.sh \
		tests/install/as_readme.sh tests/docs/in_debian
	@shellcheck -s sh -e SC2016,SC2046,SC2086,SC2164 yardstick/python/hakmem_yardstick/peers/recipes/* # run with -e

lint-rust: setup
	@bindings/rust/run lint

format: setup ## bring C and Python into the committed format
	clang-format -i $(c_files)
	$(python) -m ruff check --fix
	$(python) -m ruff format
	cd bindings/rust && cargo fmt

release: ## write a new version and its day everywhere (VERSION=0.2.0)
	@tools/setup build
	@$(python) tools/release.py $(VERSION)

bench: setup build ## the suite beside the system's malloc and its peers (ARGS="--quick", "--help")
	@build/release/bin/hakmem bench $(ARGS)

BASE ?= HEAD
judge: setup build ## this tree beside the commit BASE, by work that nobody tuned for (ARGS="--quick", "--help")
	@$(python) -m yardstick.judge $(ARGS) $(BASE) $(AFTER)

golden-update: setup build ## write anew the committed tables of what fast paths and works execute
	@$(python) -m tools.golden update
	@$(python) -m yardstick.tools.golden_counts update

layout-update: setup build ## write src/layout.ld anew: the functions that lie together as small programs run them
	@$(python) tools/layout.py

clean: ## remove what was built (.venv stays)
	rm -rf build
