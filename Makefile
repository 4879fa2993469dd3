# What people and CI run. `make demo` shows brunt at work; `make test` passes on a fresh machine.

# System packages that the tests run against; installed from Debian's registry where they are missing.
# Go may come from elsewhere, too.
GO_PACKAGES := $(shell command -v go >/dev/null || echo golang-go)
TEST_PACKAGES := nginx curl nghttp2-client nghttp2-server wrk openssl util-linux python3-websockets python3-venv thrift-compiler redis-server memcached nats-server $(GO_PACKAGES)
BENCH_PACKAGES := $(TEST_PACKAGES) apache2-utils valgrind
# What the report page is built with; npm may come from elsewhere, and bring its Node.js.
PAGE_PACKAGES := $(shell command -v npm >/dev/null || echo nodejs npm)
BROWSER_PACKAGES := chromium-headless-shell
# A first word for commands that need root, where we are not.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.DELETE_ON_ERROR:
.PHONY: demo install package page page-packages test test-packages bench bench-packages house mutations fuzz fmt lint docs gallery

# The main job on the built-in target.
demo:
	cargo run --release --locked -- demo

# brunt with its report page, into ~/.cargo/bin.
install: page
	cargo install --locked --path crates/cli

# The crates as a registry takes them, into target/package: with the page and the guide, so that they need no Node.js.
package: page
	rm -rf crates/cli/docs && mkdir crates/cli/docs && cp docs/*.md crates/cli/docs
	cargo package --workspace --locked --no-verify --allow-dirty $(addprefix --exclude ,brunt-memcached)
	rm -rf crates/cli/docs

# The report page, which the next build embeds; without it brunt has everything but --html.
page: crates/report/page/page.html

crates/report/page/page.html: $(wildcard web/src/* web/src/charts/*) web/src/types.ts web/build.mjs web/tsconfig.json web/package-lock.json
	$(MAKE) page-packages
	cd web && npm ci --silent && npm run --silent build

# The types of what the page is given, made of those that the report writes it from.
web/src/types.ts: web/types.mjs crates/report/examples/page_types.rs $(wildcard crates/report/src/html/*.rs crates/report/src/json/*.rs) $(wildcard crates/report/src/decision/page/*.rs)
	$(MAKE) page-packages
	mkdir -p target
	cargo run --quiet --locked --package brunt-report --example page_types > target/page.schema.json
	node web/types.mjs < target/page.schema.json > $@

page-packages:
	@sh .ci/packages $(SUDO) $(PAGE_PACKAGES)

# Everything that can fail, against real servers. `cargo test` alone leaves out what needs other programs, and names it.
test: test-packages page
	BRUNT_SEEDS=1000 cargo test --workspace --locked --no-fail-fast -- --include-ignored
	cd web && npm test --silent
	fuzz/smoke.sh

test-packages:
	@sh .ci/packages $(SUDO) $(TEST_PACKAGES) $(BROWSER_PACKAGES)

# Deletes each safety rule of coalescing in turn, and sees that the test named after it fails. Then breaks each rule of the engine's network
# in turn, and sees that the simulation finds it.
mutations:
	coalescing/layer/tests/mutations.sh
	crates/engine/src/tests/mutations.sh

# Measures brunt beside its peers; `make bench BENCH="http rate"` picks some.
bench: bench-packages
	cargo build --release --locked
	cargo run --release --manifest-path benchmarks/Cargo.toml -- $(BENCH)

# Makes docs/gallery: runs of known shapes, each with its page's first screen and its text.
gallery: test-packages page
	cargo build --locked
	cd web && node gallery.mjs

# Measures the source: size, circles between modules, forbidden arrows between crates. Fails while there is a circle or such an
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
