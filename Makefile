# The two commands are `make demo` and `make test`; `make help` lists the rest.

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
INTO := $(DESTDIR)$(PREFIX)

TARGET := target
# Laid out like an installation: lib/heaptoll and share/heaptoll. The binaries in target/release find it.
STAGE := $(TARGET)/stage
LIB := $(STAGE)/lib/heaptoll
SHARE := $(STAGE)/share/heaptoll
# From a folder of the tree: relative, for a name with spaces in it is no target of make.
FROM_BELOW = $(if $(filter /%,$(LIB)),$(LIB),../$(LIB))
# Where the tool's own binaries come from. `make test` compiles them with the tests, once, and stages these with them.
BINARIES := $(TARGET)/release
TESTED := BINARIES=$(TARGET)/debug STAGE=$(TARGET)/debug/stage
HEAPTOLL := $(BINARIES)/heaptoll
LABORATORY := $(BINARIES)/heaptoll-lab
PEERS := $(BINARIES)/heaptoll-peers
# Our own managers: each has a shell and a description of its name.
OURS := $(filter-out build tithe_static,$(basename $(notdir $(wildcard preload/shells/*.rs))))
# Descriptions of the collectors of Java's virtual machine.
JVM := $(wildcard lab/laboratory/managers/*.toml)
LAYERS := announce count events forward guard null oracle quarantine record sample start sweep
# Whether recipes of `managers add` and `programs add` are staged.
RECIPES := yes
# Of all these the product has few; the laboratory has all.
FOR_PRODUCT := OURS=tithe JVM= MMTK= "LAYERS=$(filter-out oracle,$(LAYERS))" RECIPES=

# What `make bench` needs in addition to the tool.
BENCHES := -p heaptoll-bench -p heaptoll-conformance
# Stacks are walked through the layers' own frames; before Rust 1.92 `panic = "abort"` left their tables out.
UNWINDABLE := --config 'build.rustflags=["-Cforce-unwind-tables=yes"]'
# The launcher starts before every measured run. Without a loader's work it starts .3 ms sooner.
STATIC := --config 'build.rustflags=["-Ctarget-feature=+crt-static", "-Crelocation-model=static", "-Cstrip=symbols"]'
# What is preloaded has a target folder of its own, since its profile and flags are not the tool's.
PRELOAD := --locked $(UNWINDABLE) --target-dir $(TARGET)/preload --manifest-path preload/Cargo.toml
# Moving collectors are MMTk's, in a workspace of their own: the tool is built without it.
MOVING := --locked --release --workspace --target-dir $(TARGET)/moving --manifest-path moving/Cargo.toml
MMTK := $(TARGET)/moving/release/heaptoll-mmtk
TITHE_ARCHIVE := tithe_static
SHELLS := -p heaptoll-shells --examples --no-default-features --features "$(addprefix heaptoll-shells/,$(OURS))"
OBJECTS := $(SHELLS) -p heaptoll-layers --features "$(addprefix heaptoll-layers/,$(LAYERS)) $(addprefix heaptoll-shells/,$(TITHE_ARCHIVE))"
# A shell and a layer bring a panic handler of their own, which a test harness has too.
UNSHELLED := --workspace --exclude heaptoll-shells --exclude heaptoll-layers
# Tests of models alone, under loom, which takes longer to compile than all that it tests.
MODELS := heaptoll-ring-model

.PHONY: help demo quick golden test test-product test-lab product-alone lab-alone test-slow study build tool lab without-lab tool-binaries preloaded moving stage \
	only-peers-demo only-peers-fast only-peers-slow install bench book reference clean lint compile-tests compile-slow-tests stage-tests lint-rest run-tests test-slurm \
	checked test-glibc release test-release

help:
	@echo "make demo               set up, build, compare four programs under six managers"
	@echo "make test               set up, build, lint, and run the tests, in two halves that run alone, too:"
	@echo "make test-product       those of the product, with all lints; compiles no tests of the laboratory"
	@echo "make test-lab           those of the laboratory; notes in testing/slow.toml that they passed"
	@echo "make quick              check formats, lint and unit-test what changed since the last commit (or BASE=commit)"
	@echo "make test-slow          run the tests that take long: the whole catalog, every case in every mode, glibc's tests"
	@echo "make test-slow PART=due run those of testing/slow.toml whose inputs changed, and note that they passed"
	@echo "make study              repeat the papers: every table, figure and claim"
	@echo "make tool               build the product alone: heaptoll, Tithe, layers, programs, the tracer"
	@echo "make lab                build it with the laboratory (heaptoll lab): old managers, moving collectors, papers"
	@echo "make build              build everything, the slow allocators (jemalloc, TCMalloc) too"
	@echo "make bench              measure heaptoll itself, the peers, the collectors"
	@echo "make reference          write the pages of options and of JSON fields, and the JSON Schemas"
	@echo "make book               the pages of docs/ as HTML in target/book"
	@echo "make release            a release in dist/ (root; a build root of Debian 11); make test-release tries it"
	@echo "make install PREFIX=DIR install what is built (default /usr/local)"

# --- building ---------------------------------------------------------------------------------------------------

# Programs of the catalog that cargo builds, the driver of replays, and whether the tracer is built. All programs in C
# are, unless C_PROGRAMS names some.
CARGO_PROGRAMS := heaptoll-espresso heaptoll-sqlite
DRIVERS := heaptoll-replay
TRACER := yes

tool:
	@$(MAKE) --no-print-directory tool-binaries preloaded $(FOR_PRODUCT)
	@$(MAKE) --no-print-directory without-lab
	@$(MAKE) --no-print-directory stage $(FOR_PRODUCT)

# What `make lab` staged goes, so that the stage is what was built last; managers of others stay.
without-lab:
	@rm -rf $(LABORATORY) $(LIB)/heaptoll-mmtk $(LIB)/layers $(OURS:%=$(LIB)/managers/%[.-]*) $(JVM:lab/laboratory/%=$(LIB)/%)

lab: preloaded moving
	@$(MAKE) --no-print-directory tool-binaries EXTRA="-p heaptoll-lab $(EXTRA)"
	@$(MAKE) --no-print-directory stage

# Debian's zstd is linked where it is installed; compiling it takes 26 CPU seconds. Releases carry their own (SYSTEM_ZSTD=).
# Its SQLite, 3.40, is too old for the bindings.
SYSTEM_ZSTD := yes
LINK_INSTALLED = $(if $(SYSTEM_ZSTD),$(shell pkg-config --exists libzstd 2>/dev/null && echo ZSTD_SYS_USE_PKG_CONFIG=1))

# The commit is for `heaptoll --version`, and compiles the binary's own crate again when there is another.
# The demo is built without the feature `full`. Once a build with it is there, the demo keeps that.
FULL := $(TARGET)/release/full
tool-binaries:
	HEAPTOLL_COMMIT="$$(scripts/commit)" $(LINK_INSTALLED) $(CARGO) build --release --locked --target-dir $(TARGET) -p heaptoll -p heaptoll-peers $(addprefix -p ,$(CARGO_PROGRAMS) $(DRIVERS)) $(FEATURES) $(EXTRA)
	@test -n "$(FEATURES)" || touch $(FULL)

# The launcher is small, and what it weighs is part of what is tested: always as users get it.
preloaded:
	$(CARGO) build --release --locked $(STATIC) --target-dir $(TARGET)/launcher -p heaptoll-launcher
	$(CARGO) build --release $(PRELOAD) $(OBJECTS)

moving:
	$(CARGO) build $(MOVING)

# Installs our managers, built in profile $(1), in folder $(2), with their variants: NAME-*.toml.
define install-ours
	@for manager in $(OURS); do \
		install -m 644 $(TARGET)/preload/$(1)/examples/lib$$manager.so $(2)/$$manager.so && \
		install -m 644 preload/shells/$$manager*.toml $(2)/ || exit 1; \
	done
endef

stage:
	@mkdir -p $(LIB)/layers $(LIB)/managers $(SHARE)
	@test -z "$(TITHE_ARCHIVE)" || preload/shells/pack $(TARGET)/preload/release/examples/libtithe_static.a $(LIB)/libtithe.a
	@$(MAKE) --no-print-directory -C programs OUT=$(FROM_BELOW)/programs $(addprefix $(FROM_BELOW)/programs/,$(C_PROGRAMS))
	@test -z "$(TRACER)" || $(MAKE) --no-print-directory -C tracer OUT=$(FROM_BELOW)/tracer
	@install -m 755 $(TARGET)/launcher/release/heaptoll-launch $(addprefix $(BINARIES)/,$(DRIVERS)) $(LIB)/
	@test -z "$(wildcard $(MMTK))" || install -m 755 $(MMTK) $(LIB)/
	@test -z "$(CARGO_PROGRAMS)" || install -m 755 $(addprefix $(BINARIES)/,$(CARGO_PROGRAMS)) $(LIB)/programs/
	@install -m 644 $(foreach layer,$(LAYERS),$(TARGET)/preload/release/examples/libheaptoll_$(layer).so $(wildcard preload/layers/$(layer)/$(layer).toml)) $(LIB)/layers/
	$(call install-ours,release,$(LIB)/managers)
	@test -z "$(JVM)" || install -m 644 $(JVM) $(LIB)/managers/
	@install -m 644 crates/reftrace-host/allocator-symbols.toml $(SHARE)/
	@rm -rf $(SHARE)/managers $(if $(RECIPES),&& mkdir $(SHARE)/managers && cp -r managers/common $(dir $(wildcard managers/*/files.sha256)) $(SHARE)/managers/)
	@rm -rf $(SHARE)/programs && cp -r programs $(SHARE)/programs && rm -rf $(addprefix $(SHARE)/programs/,$(if $(RECIPES),,originals) espresso sqlite robson planted events sleeper common Makefile) $(SHARE)/programs/*/*.[ch]

only-peers-demo only-peers-fast only-peers-slow: only-peers-%:
	$(PEERS) --out $(LIB)/managers --work $(TARGET)/peers --jobs $(JOBS) $*

build:
	@scripts/setup build
	@$(MAKE) --no-print-directory lab
	@$(MAKE) --no-print-directory only-peers-fast only-peers-slow

# What an earlier installation left in our folders goes first, or its managers would still be listed.
install:
	@test -e $(FULL) || { echo "nothing is built yet: run make build first" >&2; exit 1; }
	install -d "$(INTO)/bin" "$(INTO)/lib/heaptoll" "$(INTO)/share/heaptoll" "$(INTO)/share/doc/heaptoll" "$(INTO)/include"
	rm -f "$(INTO)/bin/heaptoll-lab"
	install -m 755 $(HEAPTOLL) $(wildcard $(LABORATORY)) "$(INTO)/bin/"
	install -m 644 include/heaptoll.h include/heaptoll_events.h include/tithe.h "$(INTO)/include/"
	rm -rf $(foreach part,layers managers programs tracer,"$(INTO)/lib/heaptoll/$(part)")
	cp -r $(LIB)/. "$(INTO)/lib/heaptoll/"
	rm -rf "$(INTO)/share/heaptoll/programs" "$(INTO)/share/heaptoll/managers"
	cp -r $(SHARE)/. "$(INTO)/share/heaptoll/"
	install -m 644 LICENSE-APACHE LICENSE-MIT NOTICE.md CITATION.cff "$(INTO)/share/doc/heaptoll/"
	$(firstword $(wildcard $(LABORATORY)) $(HEAPTOLL)) shell-files "$(INTO)/share"

# --- the main job -----------------------------------------------------------------------------------------------

# The demo compiles what it runs, a line a step (`make demo V=1` prints the commands); `make build` compiles the rest.
STEP := scripts/step $(TARGET)/log
FOR_DEMO = FEATURES=$(if $(wildcard $(FULL)),,--no-default-features) C_PROGRAMS=cfrac CARGO_PROGRAMS= DRIVERS= TRACER= TITHE_ARCHIVE= OURS=tithe JVM= MMTK= "LAYERS=count start"

demo:
	@scripts/setup demo
	@$(STEP)/tool "compile heaptoll" $(MAKE) --no-print-directory tool-binaries $(FOR_DEMO)
	@$(STEP)/preloaded "compile Tithe and its layers" $(MAKE) --no-print-directory preloaded $(FOR_DEMO)
	@$(STEP)/stage "compile the program cfrac" $(MAKE) --no-print-directory stage $(FOR_DEMO)
	@$(STEP)/peers "compile mimalloc, snmalloc and a shim for Boehm's collector" $(MAKE) --no-print-directory only-peers-demo
	@scripts/demo $(HEAPTOLL)

# The papers repeated: a page in out/study.html.
study:
	@scripts/setup study
	@$(MAKE) --no-print-directory build
	@scripts/study $(HEAPTOLL) $(BUDGET)

# --- checks -----------------------------------------------------------------------------------------------------

# Lints come with the compiling: clippy is the compiler of our own crates here, so that nothing is compiled twice.
# Each part notes its CPU seconds in target/parts, which .ci/run adds up.
LINTED := RUSTC_WORKSPACE_WRAPPER="$(CURDIR)/scripts/linted" CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
TIMED := scripts/part $(TARGET)/parts
# In quotes wherever it is used: `abspath` would split a name with spaces.
HERE := $(if $(filter /%,$(TARGET)),,$(CURDIR)/)$(TARGET)
IN_STAGE := HEAPTOLL_HOME="$(HERE)/debug/stage" HEAPTOLL_LAYERS_DIR="$(HERE)/debug/stage/lib/heaptoll/layers"

test:
	@$(MAKE) --no-print-directory test-product
	@$(MAKE) --no-print-directory test-lab

test-product test-lab: test-%:
	@scripts/setup test
	@rm -f $(TARGET)/parts
	@$(LINTED) $(TIMED) objects $(MAKE) --no-print-directory preloaded
	@$(TIMED) tests-compiled $(MAKE) --no-print-directory compile-tests HALF=$*
	@$(TIMED) staged $(MAKE) --no-print-directory stage-tests
	@$(MAKE) --no-print-directory $*-alone

# What only one half has. That the laboratory's tests passed is noted (testing/slow.toml), so that CI need not run them again.
lab-alone:
	@scripts/tests.d/slow.py run $(BUILT) laboratory

product-alone:
	@$(TIMED) checked $(MAKE) --no-print-directory checked OURS=tithe
	@$(TIMED) linted $(MAKE) --no-print-directory lint-rest
	@scripts/tests.d/slow.py check
	@$(TIMED) tracer-tests tracer/test/check "$(HERE)/debug/stage/lib/heaptoll/tracer"
	@$(LINTED) $(TIMED) documented-tests $(CARGO) test --quiet --locked --target-dir $(TARGET) --doc $(DOCUMENTED) $(SAME_FEATURES)
	@$(MAKE) --no-print-directory run-tests HALF=product

quick:
	@scripts/quick $(BASE)

# Cargo's messages name the test binaries, which scripts/tests.d runs without it.
BUILT := $(TARGET)/built-tests
NO_RUN := --no-run --message-format=json-render-diagnostics

# Where the product's half alone is compiled: what leaves out the packages with these manifests, the laboratory's and
# those that depend on it.
without = $(if $(filter product,$(HALF)),$(addprefix --exclude ,$(shell sed -sn '2s/^name = "\(.*\)"/\1/p' $(1))))

compile-tests:
	@mkdir -p $(BUILT)
	$(LINTED) $(CARGO) test --locked --target-dir $(TARGET) --workspace $(call without,lab/*/Cargo.toml shm/oracle-file/Cargo.toml testing/benches/Cargo.toml) $(NO_RUN) >$(BUILT)/tool
	$(LINTED) $(CARGO) test $(PRELOAD) $(UNSHELLED) --exclude $(MODELS) $(call without,preload/historic/Cargo.toml preload/wheel/Cargo.toml) $(NO_RUN) >$(BUILT)/preload

# And what only `make test-slow` tests.
compile-slow-tests: compile-tests
	$(LINTED) $(CARGO) test $(PRELOAD) -p $(MODELS) $(NO_RUN) >$(BUILT)/models
	$(LINTED) $(CARGO) test $(MOVING) $(NO_RUN) >$(BUILT)/moving

stage-tests:
	@$(MAKE) --no-print-directory stage $(TESTED)
	$(TARGET)/debug/heaptoll-peers --out $(TARGET)/debug/stage/lib/heaptoll/managers --work $(TARGET)/peers --jobs $(JOBS) fast

# What compiling does not see: formatting, scripts.
lint-rest:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path preload/Cargo.toml
	$(CARGO) fmt --all --check --manifest-path moving/Cargo.toml
	cd scripts/release.d && python3 -B -m unittest -q test_parts
	cd scripts/tests.d && python3 -B -m unittest -q test_tests
	shellcheck .ci/run scripts/setup scripts/fresh scripts/demo scripts/study scripts/study-picture scripts/bench scripts/glibc-tests scripts/test-slurm scripts/part scripts/step scripts/quick scripts/linted scripts/speed scripts/commit scripts/release scripts/release.d/root scripts/release.d/within scripts/release.d/sources scripts/release.d/install preload/shells/pack tracer/test/check

lint: lint-rest
	$(CARGO) clippy $(PRELOAD) --release $(OBJECTS) -- -D warnings
	$(CARGO) clippy --locked --target-dir $(TARGET) --workspace --all-targets -- -D warnings
	$(CARGO) clippy $(PRELOAD) --all-targets $(UNSHELLED) -- -D warnings
	$(CARGO) clippy $(MOVING) --all-targets -- -D warnings

# Packages with examples in their documentation.
DOCUMENTED := -p heaptoll-alloc -p heaptoll-catalog -p heaptoll-profiles
# With these, what they depend on has the features that it is compiled with for all tests, and is there already.
SAME_FEATURES := -p heaptoll -p heaptoll-compare -p heaptoll-gate -p heaptoll-report -p heaptoll-lint

# All binaries of both workspaces, or of a half, side by side. What a test compiles itself is compiled as it is here. Properties are
# tested with xorshift's numbers: ChaCha, which proptest would take, is slow unoptimised, and was half of some tests.
run-tests:
	@$(IN_STAGE) $(LINTED) PROPTEST_RNG_ALGORITHM=xs scripts/tests.d/fast.py $(TARGET)/parts $(JOBS) "$(HALF)" $(addprefix $(BUILT)/,tool preload)

# Our managers with every assertion (the profile `checked`), in an installation of their own that nothing else finds,
# next to the staged build, where tests look for them (testing/support). Building all takes 40 CPU seconds, so `make test`
# has Tithe alone.
CHECKED := $(TARGET)/checked

checked:
	$(CARGO) build --profile checked $(PRELOAD) $(SHELLS)
	@rm -rf $(CHECKED) && mkdir -p $(CHECKED)/lib/heaptoll/managers $(CHECKED)/share/heaptoll
	@cp -r $(TARGET)/debug/stage/lib/heaptoll/heaptoll-launch $(TARGET)/debug/stage/lib/heaptoll/layers $(CHECKED)/lib/heaptoll/
	$(call install-ours,checked,$(CHECKED)/lib/heaptoll/managers)

# Nine minutes on two cores; all that scripts/glibc-tests knows take an hour.
GLIBC_MANAGERS := glibc tithe tithe-collect mimalloc3 kingsley lea

# The tests that are marked `ignore = "slow: ..."`. What is skipped by name is no test: it writes into the source tree.
SLOW := --ignored --skip make_the_corpus --skip under_every_manager_here --skip every_manager_here_works

# glibc's own tests of malloc, where their source can be had: a skip is printed, and is no failure.
test-glibc:
	@$(IN_STAGE) CONFORMANCE="$(HERE)/debug/heaptoll-conformance" scripts/glibc-tests $(GLIBC_MANAGERS) || \
		{ code=$$?; test $$code = 77 && echo "SKIPPED: glibc's own tests of malloc"; }

# One experiment on two nodes of a real Slurm, with kills; a skip is printed, and is no failure.
test-slurm:
	@$(IN_STAGE) scripts/test-slurm $(TARGET)/debug/heaptoll || \
		{ code=$$?; test $$code = 77 && echo "SKIPPED: shards on Slurm"; }

# With PART=NAME, `due` or `all`: the parts of testing/slow.toml alone, which then has what they passed on.
ifdef PART
test-slow:
	@$(MAKE) --no-print-directory preloaded compile-slow-tests
	@$(MAKE) --no-print-directory stage-tests checked
	@$(IN_STAGE) $(LINTED) scripts/tests.d/slow.py run $(BUILT) $(PART)
else
test-slow:
	@scripts/setup catalog
	@$(MAKE) --no-print-directory preloaded compile-slow-tests
	@$(MAKE) --no-print-directory stage-tests checked
	$(IN_STAGE) $(LINTED) $(CARGO) test --locked --target-dir $(TARGET) --workspace --no-fail-fast -- $(SLOW)
	$(LINTED) $(CARGO) test $(PRELOAD) $(UNSHELLED) --exclude $(MODELS) --no-fail-fast -- $(SLOW)
	$(LINTED) $(CARGO) test $(PRELOAD) -p $(MODELS) --no-fail-fast
	$(LINTED) $(CARGO) test $(MOVING) --no-fail-fast
	@$(MAKE) --no-print-directory test-glibc
	@$(MAKE) --no-print-directory test-slurm
endif

bench:
	@scripts/setup bench
	@$(MAKE) --no-print-directory build EXTRA="$(BENCHES)"
	@scripts/bench $(HEAPTOLL)

release:
	@scripts/release

test-release:
	@scripts/test-release

# What is made from the types and the definitions of the command line: pages of options and of JSON fields, JSON Schemas.
reference:
	WRITE_DOCS=1 $(CARGO) test -q --locked --target-dir $(TARGET) -p heaptoll-lab -p heaptoll-papers --lib -- page_has_the_options page_has_the_fields page_has_the_metrics schema_of_its_own_name

# What commands write of stored data for scripts; the names of the files that changed are printed.
golden:
	$(IN_STAGE) WRITE_GOLDEN=1 $(LINTED) $(CARGO) test -q --locked --target-dir $(TARGET) -p heaptoll --test cli -p heaptoll-lab --test lab -- --nocapture golden::

book: reference
	@command -v mdbook >/dev/null || { echo "mdbook is not installed: cargo install mdbook --locked; or read the pages as they are, from docs/SUMMARY.md" >&2; exit 1; }
	mdbook build docs
	@echo "the book: target/book/index.html"

clean:
	rm -rf $(TARGET) out dist
