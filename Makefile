# The short way to everything; CMake (presets release, debug, tsan, ubsan, asan, musl, aarch64) does
# the work.
.DEFAULT_GOAL := help
.PHONY: help setup build test test-rust test-musl test-cross test-elsewhere test-install \
	test-programs test-docs deb demo lint format bench golden-update clean
MAKEFLAGS += --no-print-directory

python := .venv/bin/python
jobs := $(shell nproc)
c_files = $(shell find src include bench tests tools -name '*.[ch]' -o -name '*.cc')
# Of the builds for other systems, what `make test` runs: one kind of each.
few := '^(unit_base|unit_heap|api_life|api_misuse|stress_names)$$'
# ThreadSanitizer wants its shadow where a kernel with much address randomness may put a library.
fixed_addresses := $(shell setarch -R true 2>/dev/null && echo setarch -R)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is needed: Debian packages, Python parts into .venv
	@tools/setup

build: setup ## build/release/libhakmem.so and what belongs to it
	@cmake --preset release >/dev/null
	@cmake --build --preset release

test: build ## all tests, the stress under ThreadSanitizer and UBSan too, a few elsewhere, and lint
	ctest --preset release -j $(jobs)
	@for sanitizer in tsan ubsan; do \
		cmake --preset $$sanitizer >/dev/null && cmake --build --preset $$sanitizer && \
		$(fixed_addresses) ctest --preset $$sanitizer -j $(jobs) || exit 1; \
	done
	@$(MAKE) test-elsewhere
	@$(MAKE) test-rust
	@$(MAKE) lint

test-elsewhere: setup ## a few of the tests with musl, and on AArch64 under qemu
	@for system in musl aarch64; do \
		cmake --preset $$system >/dev/null && cmake --build --preset $$system && \
		ctest --preset $$system -j $(jobs) -R $(few) || exit 1; \
	done

test-rust: setup ## the Rust crate, and its build from what would be published
	@bindings/rust/run test

test-musl: setup ## unit, api and stress tests with musl
	@cmake --preset musl >/dev/null
	@cmake --build --preset musl
	ctest --preset musl -j $(jobs)

test-cross: setup ## the same on AArch64 under qemu; with pages of 16 and 64 KiB; with 39 bits of address
	@cmake --preset aarch64 >/dev/null
	@cmake --build --preset aarch64
	ctest --preset aarch64
	QEMU_PAGESIZE=16384 ctest --preset aarch64 -j $(jobs) -LE stress
	QEMU_PAGESIZE=65536 ctest --preset aarch64 -j $(jobs) -LE stress
	QEMU_RESERVED_VA=0x8000000000 ctest --preset aarch64 -R '^(api_life|stress_names)'

test-install: build ## the packages in a Debian of their own: install, build with, remove, purge
	@tests/install/in_debian

test-docs: setup ## the documentation's commands, in Debians of their own that boot systemd
	@tests/docs/in_debian

deb: ## Debian packages, in build/deb
	@tools/deb

test-programs: build ## all real programs with the library and without: docs/programs.md (ARGS="--resume")
	@mkdir -p build/programs
	@bash -o pipefail -c '$(python) tests/programs/run.py --lib build/release/libhakmem.so \
		--out build/programs --all --install --rounds 3 $(ARGS) 2>&1 | tee -a build/programs/log'; \
		status=$$?; $(python) tests/programs/summary.py build/programs/results docs/programs.md && exit $$status

demo: build ## redis and a batch program, with the system's malloc and with hakmem
	@$(python) tools/demo/demo.py --lib build/release/libhakmem.so

# One file for each run of clang-tidy: in a second one it takes every va_list for uninitialized.
lint: setup ## format, clang-tidy, ruff, mypy, layers, shell scripts, cargo fmt and clippy
	@cmake --preset lint >/dev/null
	clang-format --dry-run -Werror $(c_files)
	@find src -name '*.c' | sort | xargs -P $(jobs) -n 1 clang-tidy -p build/lint --quiet
	$(python) -m ruff check
	$(python) -m ruff format --check
	$(python) -m mypy $(wildcard tools tests python)
	$(python) tools/check_layers.py
	shellcheck tools/setup tools/deb .ci/run command/hakmem.in bindings/rust/run \
		tests/install/in_debian tests/install/in_debian.sh tests/docs/in_debian
	@shellcheck -s sh -e SC2016,SC2046,SC2086,SC2164 python/hakmem/bench/peers/recipes/* # run with -e
	@bindings/rust/run lint

format: setup ## bring C and Python into the committed format
	clang-format -i $(c_files)
	$(python) -m ruff check --fix
	$(python) -m ruff format
	cd bindings/rust && cargo fmt

bench: build ## the suite beside the system's malloc and its peers (ARGS="--quick", "--help")
	@build/release/bin/hakmem bench $(ARGS)

golden-update: build ## write anew the committed tables of what fast paths and works execute
	@$(python) -m tools.golden update
	@$(python) -m tools.golden.counts update

clean: ## remove what was built (.venv stays)
	rm -rf build
