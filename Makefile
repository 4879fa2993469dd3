# What people and CI run. `make demo` shows brunt at work; `make test` passes on a fresh machine.

# System packages that the tests run against; installed from Debian's registry where they are missing.
# Go may come from elsewhere, too.
GO_PACKAGES := $(shell command -v go >/dev/null || echo golang-go)
TEST_PACKAGES := nginx tinyproxy curl nghttp2-client nghttp2-server wrk openssl util-linux python3-websockets python3-venv thrift-compiler redis-server memcached nats-server prometheus iproute2 docker-compose valgrind $(GO_PACKAGES)
DIST_PACKAGES := rpm debootstrap busybox-static python3-venv binutils iproute2 util-linux
BENCH_PACKAGES := $(TEST_PACKAGES) apache2-utils varnish
# What drives a browser in tests of pages; npm may come from elsewhere, and bring its Node.js.
BROWSER_PACKAGES := chromium-headless-shell $(shell command -v npm >/dev/null || echo nodejs npm)
# A first word for commands that need root, where we are not.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.DELETE_ON_ERROR:
.PHONY: demo install package test test-packages bench bench-packages coalescing http3 moving llm-real house valgrind mutations fuzz chaos fmt lint docs gallery dist dist-test dist-twice dist-packages site site-test semver msrv

# The main job on the built-in target.
demo:
	cargo run --release --locked -- demo

# brunt, into ~/.cargo/bin.
install:
	cargo install --locked --path crates/cli

# The crates as a registry takes them, into target/package, with the guide.
package:
	rm -rf crates/cli/docs && mkdir crates/cli/docs && cp docs/*.md crates/cli/docs
	cargo package --workspace --locked --no-verify --allow-dirty $(addprefix --exclude ,brunt-memcached brunt-whole-runs)
	rm -rf crates/cli/docs

# A release, in dist/: tarball, packages for Debian and Fedora, the image's files, checksums, bill of materials.
dist: dist-packages
	packaging/build.sh
	packaging/dist.sh

# Installs each package in a clean root, uses it, and removes it. Needs root.
dist-test: dist-packages
	packaging/test.sh

# Whether two builds, in two folders, have the same bytes: about as long as two times `make dist`.
dist-twice: dist-packages
	packaging/twice.sh

dist-packages:
	@sh .ci/packages $(SUDO) $(DIST_PACKAGES)

# Whether crates that promise something keep it since the last release, or since `make semver BASE=revision`.
semver:
	packaging/semver.sh $(BASE)

# Whether the coalescing layer compiles with the Rust that its manifest names: the lowest that its dependencies take. Needs rustup.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1.0/p' coalescing/layer/Cargo.toml)
msrv:
	rustup toolchain install $(MSRV) --profile minimal
	cargo +$(MSRV) check --locked --target-dir target/msrv -p brunt-coalesce
	cargo +$(MSRV) check --locked --target-dir target/msrv -p brunt-coalesce --no-default-features

# The guide as a static site, in target/site; its links, its search and its accessibility, in a browser.
site:
	packaging/site.sh
site-test: site test-packages
	cd web && npm ci --silent && SITE="$(CURDIR)/target/site" node --test --test-reporter=spec test/site.mjs

# Everything that can fail, against real servers. `cargo test` alone leaves out what needs other programs, and names it.
# Three tests at once even on two cores: most of them wait. Random inputs are the same each time; `make fuzz` draws others.
test: test-packages
	BRUNT_SEEDS=1000 PROPTEST_RNG_SEED=1 TWO_CLIENTS_SECONDS=60 RUST_TEST_THREADS=$${RUST_TEST_THREADS:-3} .ci/test
	cd crates/javascript && node --no-warnings --experimental-vm-modules --test tests/library/*.test.mjs
	cd web && npm ci --silent && npm test --silent
	SEED=1 fuzz/smoke.sh

# Looks for faults with inputs that nobody tried: each parser for a minute, `make fuzz SECONDS=600` for ten, and every property over values.
fuzz: test-packages
	cargo --config .ci/tests.toml test --workspace --features brunt/schema --locked --lib
	fuzz/smoke.sh $(or $(SECONDS),60)

# The unit tests of scripts' users under valgrind: some of their code is unsafe, and they change stacks. A minute of CPU time.
valgrind: test-packages
	program=$$(cargo --config .ci/tests.toml test --workspace --features brunt/schema --locked --no-run --message-format=json \
		| sed -n 's/.*"executable":"\([^"]*\/brunt_javascript-[^"]*\)".*/\1/p') \
		&& cd crates/javascript && valgrind --quiet --error-exitcode=9 --max-stackframe=2097152 "$$program" --test-threads=1

test-packages:
	@sh .ci/packages $(SUDO) $(TEST_PACKAGES) $(BROWSER_PACKAGES)

# Deletes each safety rule of coalescing in turn, and sees that the test named after it fails. Then breaks each rule of the engine's network,
# and of agents and their controller, in turn, and sees that the simulation of the one and the tests of the other find it.
mutations:
	coalescing/layer/tests/mutations.sh
	cargo test --locked -p brunt-whole-runs --lib -- --ignored every_broken_rule_is_found
	cargo test --locked -p brunt-cluster --lib -- --ignored every_broken_rule_is_found

# Breaks real runs over agents: processes killed and stopped, a thread frozen, a disk hung, NATS restarted and frozen, links cut and slow.
# Ten minutes; `make chaos RUNS=13 SEED=2` makes each kind once.
chaos: test-packages
	cargo build --locked -p brunt
	python3 benchmarks/chaos.py target/debug/brunt $(or $(RUNS),60) $(or $(SEED),1)

# Measures brunt beside its peers; `make bench BENCH="http rate"` picks some.
bench: bench-packages
	cargo build --release --locked
	cargo run --release --manifest-path benchmarks/Cargo.toml -- $(BENCH)

# What coalescing costs: answers that cannot be shared, and a handler that does nothing. Then brunt beside nginx and Varnish.
coalescing: bench-packages
	cargo build --release --locked
	python3 benchmarks/coalescing/beside.py target/release/brunt
	python3 benchmarks/coalescing/unshared.py target/release/brunt
	python3 benchmarks/coalescing/cost.py

# HTTP/3 beside oha's, which comes from the registry of Rust.
http3:
	cargo build --release --locked
	cargo install --quiet --locked --features http3 --root target/oha --target-dir target/oha oha
	python3 benchmarks/http3/beside_oha.py target/release/brunt target/oha/bin/oha

# Scripts of Locust, collections of Postman and command lines of curl beside what they become here: calls, failures and verdicts, or the requests
# that are sent, agree. Locust comes from Python's registry and newman from npm's; `make moving MOVING="curl postman/json"` picks some, and
# `BRUNT=program` takes one that is built already.
moving: test-packages
	$(if $(BRUNT),,cargo build --release --locked)
	python3 -m venv target/moving/python && target/moving/python/bin/pip install --quiet locust
	npm install --silent --no-fund --no-audit --prefix target/moving/node newman
	benchmarks/moving/run.py --brunt $(or $(BRUNT),target/release/brunt) --locust target/moving/python/bin/locust --newman target/moving/node/node_modules/.bin/newman $(MOVING)

# Language models against a real server with a tiny model. Some 6 GB of packages, or PYTHON with torch and `transformers[serving]`.
llm-real:
	$(if $(PYTHON),,python3 -m venv target/llm-real && target/llm-real/bin/pip install --quiet -r crates/cli/tests/network/peers/llm/requirements.txt)
	BRUNT_LLM_PYTHON=$(or $(PYTHON),$(CURDIR)/target/llm-real/bin/python) cargo --config .ci/tests.toml test --workspace --features brunt/schema --locked --test network -- --include-ignored real_llm

# Makes docs/gallery: runs of known shapes, each with its page's first screen and its text.
gallery: test-packages
	cargo build --locked
	cd web && npm ci --silent && node gallery.mjs && node outcomes.mjs

# Measures the source: size, circles between modules, forbidden arrows between crates, licences and unused dependencies. Fails while there is a circle or such an
# arrow; `make house HOUSE=--edges` names the lines that make the circles.
house:
	cargo test --quiet --locked --manifest-path house/Cargo.toml
	cargo run --quiet --locked --manifest-path house/Cargo.toml -- $(HOUSE)

bench-packages:
	@sh .ci/packages $(SUDO) $(BENCH_PACKAGES)

fmt:
	cargo fmt --all

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
