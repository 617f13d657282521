# Narrows. `make run` and `make test` set up what they need on a fresh Debian machine.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help setup setup-bpf setup-static setup-kernel build run install uninstall deb test-deb static test-static test-container test-openwrt release portable \
	test-crates test test-kernel test-kernels test-capture test-captures test-browser test-long python fuzz adversary fidelity \
	detection one-flow lisa cmpbbr nornet tr laws mixes bcp133 bench bench-instructions site lint clean capi install-capi \
	uninstall-capi

PREFIX ?= /usr/local
SEEDS ?= 60
SOAK ?= 20
OUT ?= out/first-light-$(SEEDS)
FUZZ ?= 60
HOURS ?= 2
MINUTES ?= $(shell echo $$(($(HOURS) * 60)))

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## install what building and running need (apt, with sudo where not root)
	@scripts/setup

setup-bpf:
	@scripts/setup bpf

setup-kernel:
	@scripts/setup kernel

build: setup
	cargo build --release --locked

run: setup ## the first table: cost and gain of coupling and detection on three networks, and 20 s in this kernel (SEEDS=60 OUT=out/first-light-60)
	@SEEDS=$(SEEDS) OUT=$(OUT) scripts/first-table

# With sudo if this user may not write there.
into := $(DESTDIR)$(PREFIX)
sudo := $(if $(DESTDIR),,$(shell [ "$$(id -u)" = 0 ] || [ -w "$(into)" ] || echo sudo))
release := $(or $(CARGO_TARGET_DIR),target)/release
# What an interrupted call has done it keeps in its folder.
papers := $(release)/narrows papers --resume --docs docs
# What threads and CPUs share, in every interleaving.
loom := RUSTFLAGS="--cfg loom_models" cargo test --locked --target-dir $(or $(CARGO_TARGET_DIR),target)/loom
# What threads do to each other's memory, in the interleavings that happen: a target whose standard library has the sanitizer, too.
tsan := x86_64-unknown-linux-gnutsan
# libbpf is built by make too, and would go into our DESTDIR.
cargo := env -u MAKEFLAGS -u MFLAGS -u DESTDIR -u PREFIX cargo
musl := $(shell uname -m)-unknown-linux-musl
units := narrows-advise.service narrows-export.service narrows-export.timer
completions := share/bash-completion/completions/narrows share/zsh/site-functions/_narrows share/fish/vendor_completions.d/narrows.fish

install: setup setup-bpf ## the command with all hosts, BPF objects and completions, into PREFIX=/usr/local
	$(cargo) build --release --locked -p narrows --features "$$(scripts/hosts kernel)"
	$(sudo) install -D $(release)/narrows "$(into)/bin/narrows"
	$(sudo) $(release)/narrows kernel objects "$(into)/lib/narrows"
	$(sudo) install -D -m 644 -t "$(into)/lib/systemd/system" $(addprefix packaging/,$(units))
	$(sudo) mkdir -p $(foreach file,$(completions),"$(into)/$(dir $(file))")
	$(release)/narrows completions bash | $(sudo) tee "$(into)/$(word 1,$(completions))" >/dev/null
	$(release)/narrows completions zsh | $(sudo) tee "$(into)/$(word 2,$(completions))" >/dev/null
	$(release)/narrows completions fish | $(sudo) tee "$(into)/$(word 3,$(completions))" >/dev/null
	$(sudo) $(release)/narrows man "$(into)/share/man/man1"

uninstall: ## remove what install installed; first run `narrows kernel unload --boot`
	$(sudo) rm -rf "$(into)/bin/narrows" "$(into)/lib/narrows" $(foreach file,$(completions) $(addprefix lib/systemd/system/,$(units)),"$(into)/$(file)") "$(into)"/share/man/man1/narrows{,-*}.1

deb: setup setup-bpf ## the Debian package, target/debian/narrows_*.deb (with cargo-deb, which cargo installs in target/tools)
	scripts/deb

test-deb: deb ## install, use and remove the package in a clean chroot (root; debootstrap and a mirror)
	scripts/test-deb

setup-static:
	@scripts/setup static

static: setup-static ## the command as one file for any Linux of this architecture
	scripts/static $(musl)

test-static: setup-static ## that file alone in a root: scenarios, QUIC, a law loaded and used (root)
	narrows=$$(scripts/static $(musl)) && scripts/test-static "$$narrows"

test-container: setup-static ## that file in an image of packaging/Containerfile, where podman or docker is
	narrows=$$(scripts/static $(musl)) && scripts/test-container "$${narrows%/*}"

test-openwrt: setup-static ## the router's command as a service of OpenWrt, in a root with busybox (root)
	narrows=$$(scripts/static $(musl) static,detect) && scripts/test-openwrt "$$narrows"

release: setup-static ## all that is published of a version, target/release-VERSION; `scripts/release --again` builds it twice and compares
	scripts/release

portable: ## narrows-laws and narrows-quic for other systems and by the oldest Rust, type checked (rustup, clang)
	scripts/portable

test-crates: ## a project outside of the repository builds and runs with the packages of narrows-laws and narrows-quic
	scripts/test-crates

capi := $(MAKE) -C crates/laws/capi O="$(abspath $(or $(CARGO_TARGET_DIR),target)/capi)"

capi: ## the laws as a C library for other stacks, target/capi; no Rust in it (docs/guide/c-api.md)
	$(capi) all example

install-capi: ## header, libraries and narrows_cc.pc into PREFIX=/usr/local
	$(capi) all
	$(sudo) $(capi) install PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)"

uninstall-capi: ## remove what install-capi installed
	$(sudo) $(capi) uninstall PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)"

test: setup ## unit, property and scenario tests
	@scripts/test

test-kernel: setup setup-kernel ## the laws in this machine's kernel, and emulation (needs root and BTF, else skips with a note)
	@scripts/test-kernel

test-kernels: setup setup-kernel ## every law loaded and coupled in Linux 6.1 and 6.12, emulated (no root; minutes)
	@scripts/setup qemu
	scripts/test-kernels

test-capture: setup ## check captures with tshark
	@scripts/setup capture
	cargo test --locked -p narrows-lab --test suite capture::

test-captures: build ## `detect` on the 1,044 captures of other tools' test suites (Debian's sources; a minute)
	scripts/test-captures

test-browser: setup setup-kernel site ## pages of --report, the site and the simulator in a page, in a headless Chromium; pictures in target/browser
	@scripts/setup browser
	cargo test --locked -p narrows --test browser -- --ignored --nocapture --test-threads 1

python: setup ## the wheel of the Python package, target/wheels/narrows-*.whl, tested in an environment of its own with its notebooks
	@scripts/setup python
	scripts/python wheel

test-long: setup ## statistics: many seeds, minutes to an hour; property tests with cases never drawn before; the model checker on what threads and CPUs share, the thread sanitizer on a run in parts; every control loaded, and one loaded and unloaded a hundred times; short connections, kills and orphans for SOAK=20 minutes
	cargo test --locked --release -- --include-ignored
	scripts/setup valgrind && { scripts/instructions || [ $$? = 3 ]; } # other compilers make other instructions
	-scripts/python venv
	cargo test --locked --release -p narrows-python -- --ignored
	cargo test --locked -p narrows-quic-sim --features qlog --test qlog
	scripts/setup python && scripts/test-qlog
	$(loom) -p narrows-laws -p narrows-sim --test loom
	@if rustup target list --toolchain nightly --installed 2>/dev/null | grep -qx $(tsan); then set -x; \
		cargo +nightly test --locked --target-dir $(or $(CARGO_TARGET_DIR),target)/tsan --target $(tsan) -p narrows-sim --test suite parts::; \
	else echo "skipped: the thread sanitizer needs 'rustup target add --toolchain nightly $(tsan)'"; fi
	@if scripts/setup kernel; then cargo test --locked -p narrows --features kernel --test kernel -- --ignored --nocapture && \
		$(loom) -p narrows-kernel --test slots && \
		cargo test --locked -p narrows-kernel --test loader --test reload -- --ignored --nocapture && \
		NARROWS_SOAK_MINUTES=$(SOAK) cargo test --locked -p narrows-kernel --test soak -- --ignored --nocapture && \
		scripts/lint --long; fi

fidelity: setup ## the figures of docs/method/fidelity.md: the simulator against theory, ns-2 and ns-3
	scripts/fidelity

detection: build ## the tables of docs/results/detection.md and docs/results/detectors-compared.md: detectors against the papers and each other (20 and 30 seeds, two good hours on two cores)
	$(papers) sbd detectors --out out/detection

one-flow: build ## the tables of docs/results/one-flow.md: what a group of paths takes, and what it costs others (5 to 20 seeds, half an hour on one idle core)
	$(papers) one-flow --out out/one-flow

lisa: build ## the tables of docs/results/lisa.md: short transfers with linked slow start (10 seeds, half an hour on two cores)
	$(papers) lisa --out out/lisa

cmpbbr: build ## the tables of docs/results/bbr.md: BBR coupled, and the C-MPBBR paper (10 seeds of 120 s)
	$(papers) cmpbbr --out out/cmpbbr

nornet: build ## the tables of docs/results/nornet.md: six controls over three by two providers (50 seeds of 60 s, a quarter of an hour on two idle cores)
	$(papers) nornet --out out/nornet

tr: setup ## the tables of docs/results/tr.md: the trend-line paper on multipath QUIC (170 s each; half an hour on two idle cores; needs Rust 1.88)
	cargo build --release --locked -p narrows --features quic
	$(papers) tr --out out/tr

laws: build ## the table of docs/results/laws.md: every law on the same networks (20 seeds, minutes)
	$(papers) laws --out out/laws

mixes: build ## the tables of docs/results/mixes.md: 1,000 mixes of links (50 s each under up to 44 choices, an hour on one idle core)
	$(papers) mixes --out out/mixes

bcp133: build ## the tables of docs/results/bcp133.md: what RFC 9743 asks, for ten controls (quick form with 20 seeds, an hour of CPU time)
	$(release)/narrows evaluate reno cubic lia olia balia wvegas bbr bbr3 greno+xcorr gcubic+xcorr --quick --seeds 20 --resume --docs docs --out out/bcp133

fuzz: setup ## parsers of files and options, and small runs, under libFuzzer (FUZZ=60 seconds each)
	@scripts/setup fuzz
	FUZZ=$(FUZZ) scripts/fuzz

adversary: build ## networks in which a control does worst (HOURS=2 or MINUTES=; CONTROLS=greno+xcorr,.. default: all; SEED=1), continued in out/adversary
	$(release)/narrows fuzz $(if $(CONTROLS),--cc $(CONTROLS)) --seed $(or $(SEED),1) --for $(MINUTES)min --out out/adversary --resume

bench: setup ## ns per acknowledgement, packet-hops per second, MB of capture per second, lateness of emulation, CPU time of a transfer in QUIC and in the kernel
	cargo bench --locked -p narrows-laws
	cargo bench --locked -p narrows-net
	cargo bench --locked -p narrows-sim
	cargo bench --locked -p narrows-detect
	cargo bench --locked -p narrows-emu
	cargo bench --locked -p narrows-quic
	@if scripts/setup kernel; then cargo bench --locked -p narrows-kernel; fi

bench-instructions: setup ## what the simulator executes, counted by valgrind: fails at 3 % more than kept in crates/sim/benches/instructions.tsv
	@scripts/setup valgrind
	scripts/instructions

site: setup ## the pages as a site, searched and read offline: target/site/index.html, with the simulator in a page (rustup, clang)
	@scripts/setup site
	scripts/site

lint: setup setup-kernel ## rustfmt, clippy, clang-format, C warnings
	scripts/lint

clean:
	cargo clean
	rm -rf out
