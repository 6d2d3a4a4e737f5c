# The commands for developers; the scripts in script/ do the work.
.DEFAULT_GOAL := help
.PHONY: help setup build test demo lint bench docs fuzz clean

help: ## show this
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

setup: ## find or build Ruby, make the Python environments (the first time takes some minutes)
	@script/setup

build: setup ## build the extensions for the preferred Ruby and Python
	@script/ruby -e 'puts "Ruby #{RUBY_VERSION}: offlock #{Offlock::VERSION}"'
	@script/python -c 'import sys, offlock; print(f"Python {sys.version.split()[0]}: offlock {offlock.__version__}")'

test: setup ## run all tests: the core, every Ruby, every Python, the documentation's examples (or TESTS="core ruby")
	@script/test $(TESTS)

demo: ## serve pages beside a report that holds the lock, find it, replace one import, compare
	@script/demo

lint: setup ## check format, lints, types and layering
	@script/lint

bench: setup ## compare the speed with that of other libraries
	@script/bench

docs: ## build the API documentation of the core
	@cargo doc --no-deps -p offlock-core -p offlock-cli

fuzz: ## fuzz the core for SECONDS=60 a target (needs cargo-fuzz and a nightly Rust)
	@script/fuzz $(SECONDS)

clean: ## remove all build outputs, but not the tools folder
	@rm -rf target fuzz/target dist demo-out ruby/pkg
	@rm -f python/offlock/_offlock.*.so
