# The two commands are `make demo` and `make test`; `make help` lists the rest.

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
INTO := $(DESTDIR)$(PREFIX)

TARGET := target
# Laid out like an installation: lib/heaptoll and share/heaptoll. The binary in target/release finds it.
STAGE := $(TARGET)/stage
LIB := $(STAGE)/lib/heaptoll
SHARE := $(STAGE)/share/heaptoll
HEAPTOLL := $(TARGET)/release/heaptoll
PEERS := $(TARGET)/release/heaptoll-peers
# Our own managers: each folder of managers/ with a description is one, and its shell is the package of that name.
OURS := $(patsubst managers/%/manager.toml,%,$(wildcard managers/*/manager.toml))

# What `make bench` needs beside the tool.
BENCHES := $(addprefix -p heaptoll-,bench papers adversary fastpath conformance collectors recording exact layers)
# Stacks are walked through the layers' own frames; before Rust 1.92 `panic = "abort"` left their tables out.
UNWINDABLE := --config 'build.rustflags=["-Cforce-unwind-tables=yes"]'
# A shell brings a panic handler of its own, which a test harness has too.
UNSHELLED := --workspace $(addprefix --exclude ,$(OURS) tithe-static)

.PHONY: help demo test study build tool peers-fast peers-slow install bench clean check lint unit

help:
	@echo "make demo               set up, build, compare real programs under all managers (about six minutes)"
	@echo "make test               set up, build, and run every test"
	@echo "make study              repeat the papers: every table, figure and claim (about 40 minutes after building)"
	@echo "make build              build everything, the slow allocators (jemalloc, TCMalloc) too"
	@echo "make bench              measure heaptoll itself, the peers, the historic managers beside their papers, the collectors"
	@echo "make install PREFIX=DIR install what is built (default /usr/local)"

# --- building ---------------------------------------------------------------------------------------------------

tool:
	$(CARGO) build --release --locked --target-dir $(TARGET) -p heaptoll -p heaptoll-launcher -p heaptoll-peers -p heaptoll-espresso -p heaptoll-sqlite -p heaptoll-replay $(EXTRA)
	$(CARGO) build --release --locked $(UNWINDABLE) --target-dir $(TARGET)/layers --manifest-path layers/Cargo.toml
	$(CARGO) build --release --locked --target-dir $(TARGET)/managers --manifest-path managers/Cargo.toml $(addprefix -p ,$(OURS) tithe-static)
	@mkdir -p $(LIB)/layers $(LIB)/managers $(SHARE)
	@managers/tithe/static/pack $(TARGET)/managers/release/libtithe_static.a $(LIB)/libtithe.a
	@$(MAKE) --no-print-directory -C programs OUT=$(abspath $(LIB))/programs
	@$(MAKE) --no-print-directory -C tracer OUT=$(abspath $(LIB))/tracer
	@install -m 755 $(TARGET)/release/heaptoll-launch $(TARGET)/release/heaptoll-replay $(LIB)/
	@install -m 755 $(TARGET)/release/heaptoll-espresso $(TARGET)/release/heaptoll-sqlite $(LIB)/programs/
	@install -m 644 $(foreach layer,count start live record null announce forward quarantine sweep events,$(TARGET)/layers/release/libheaptoll_$(layer).so) $(LIB)/layers/
	@for manager in $(OURS); do \
		install -m 644 $(TARGET)/managers/release/lib$$manager.so $(LIB)/managers/$$manager.so && \
		install -m 644 managers/$$manager/manager.toml $(LIB)/managers/$$manager.toml || exit 1; \
		for variant in managers/$$manager/variants/*.toml; do \
			test ! -e $$variant || install -m 644 $$variant $(LIB)/managers/ || exit 1; \
		done; \
	done
	@rm -rf $(SHARE)/programs && cp -r programs $(SHARE)/programs && rm -rf $(addprefix $(SHARE)/programs/,espresso sqlite robson planted events Makefile) $(SHARE)/programs/*/*.[ch]

peers-fast: tool
	$(PEERS) --out $(LIB)/managers --work $(TARGET)/peers --jobs $(JOBS) fast

peers-slow: tool
	$(PEERS) --out $(LIB)/managers --work $(TARGET)/peers --jobs $(JOBS) slow

build:
	@scripts/setup build
	@$(MAKE) --no-print-directory peers-fast
	@$(MAKE) --no-print-directory peers-slow

# What an earlier installation left in our folders goes first, or its managers would still be listed.
install:
	@test -x $(HEAPTOLL) || { echo "nothing is built yet: run make build first" >&2; exit 1; }
	install -d "$(INTO)/bin" "$(INTO)/lib/heaptoll" "$(INTO)/share/heaptoll" "$(INTO)/share/doc/heaptoll" "$(INTO)/include"
	install -m 755 $(HEAPTOLL) "$(INTO)/bin/heaptoll"
	install -m 644 include/heaptoll.h include/heaptoll_events.h include/tithe.h "$(INTO)/include/"
	rm -rf $(foreach part,layers managers programs tracer,"$(INTO)/lib/heaptoll/$(part)")
	cp -r $(LIB)/. "$(INTO)/lib/heaptoll/"
	rm -rf "$(INTO)/share/heaptoll/programs"
	cp -r $(SHARE)/. "$(INTO)/share/heaptoll/"
	install -m 644 LICENSE-APACHE LICENSE-MIT NOTICE.md "$(INTO)/share/doc/heaptoll/"

# --- the main job -----------------------------------------------------------------------------------------------

demo:
	@scripts/setup demo
	@$(MAKE) --no-print-directory peers-fast
	@scripts/demo $(HEAPTOLL)

# The papers repeated: half an hour of measuring, a page in out/study.html.
study:
	@scripts/setup study
	@$(MAKE) --no-print-directory peers-fast
	@$(MAKE) --no-print-directory peers-slow
	@scripts/study $(HEAPTOLL) $(BUDGET)

# --- checks -----------------------------------------------------------------------------------------------------

test:
	@scripts/setup test
	@$(MAKE) --no-print-directory peers-fast
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit

lint:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path layers/Cargo.toml
	$(CARGO) fmt --all --check --manifest-path managers/Cargo.toml
	$(CARGO) clippy --locked --target-dir $(TARGET) --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked $(UNWINDABLE) --target-dir $(TARGET)/layers --manifest-path layers/Cargo.toml --release -- -D warnings
	$(CARGO) clippy --locked --target-dir $(TARGET)/managers --manifest-path managers/Cargo.toml --release -- -D warnings
	$(CARGO) clippy --locked --target-dir $(TARGET)/managers --manifest-path managers/Cargo.toml --all-targets $(UNSHELLED) -- -D warnings
	shellcheck .ci/run scripts/setup scripts/demo scripts/study scripts/study-picture scripts/bench managers/tithe/static/pack tracer/test/check

unit:
	tracer/test/check $(abspath $(LIB))/tracer
	HEAPTOLL_HOME=$(abspath $(STAGE)) HEAPTOLL_LAYERS_DIR=$(abspath $(LIB))/layers $(CARGO) test --locked --target-dir $(TARGET) --workspace
	$(CARGO) test --locked $(UNWINDABLE) --target-dir $(TARGET)/layers --manifest-path layers/Cargo.toml -p heaptoll-next -p heaptoll-facts -p heaptoll-stacks -p heaptoll-held -p heaptoll-tables -p heaptoll-sweeping
	$(CARGO) test --locked --target-dir $(TARGET)/managers --manifest-path managers/Cargo.toml $(UNSHELLED)

bench:
	@scripts/setup bench
	@$(MAKE) --no-print-directory build EXTRA="$(BENCHES)"
	@scripts/bench $(HEAPTOLL)

clean:
	rm -rf $(TARGET) out
