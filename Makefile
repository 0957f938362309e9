# All commands of this project. `make` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# There is one local cluster per machine.
.NOTPARALLEL:

# Build results live in the user's cache, so that a fresh clone does not start from zero.
QUORATE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quorate
CARGO_TARGET_DIR ?= $(QUORATE_CACHE)/target
# Errors of tests have their own context; backtraces only hide it.
RUST_LIB_BACKTRACE ?= 0
export QUORATE_CACHE CARGO_TARGET_DIR RUST_LIB_BACKTRACE

CARGO := cargo
CLUSTER = $(CARGO) run --quiet --locked --package quorate-cluster --bin quorate-cluster --
QUORATE = $(CARGO) run --quiet --locked --package quorate --bin quorate --

##@ The two commands
.PHONY: demo test
demo: prerequisites ## Install the operator in a local cluster, then create, heal, upgrade, roll back and scale etcd
	@$(CLUSTER) up
	@$(CARGO) run --quiet --locked --package quorate-harness --bin quorate-demo

test: lint unit properties bench-check webhook-abuse cluster-test e2e ## All checks: format, lints, unit tests, end-to-end tests on the local cluster

##@ The inner loop
.PHONY: fmt lint unit properties properties-long convergence-long webhook-abuse webhook-abuse-long bench bench-check bench-record
fmt: ## Format the code
	@$(CARGO) fmt --all

lint: prerequisites ## Check format and lints
	@echo "== format and lints"
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --locked --workspace --all-targets -- --deny warnings

unit: prerequisites ## Tests that need no cluster (minutes)
	@echo "== unit tests"
	@$(CARGO) test --locked --workspace --lib --bins --test agent --test architecture --test cli --test convergence --test docs --test fuzz --test leader_election --test manifests --test denied --test admission_reviews --test rules --test samples

# Optimised: 100,000 objects for each pair of versions.
PROPERTIES = $(CARGO) test --locked --profile properties --package quorate --test admission --test conversion
properties: prerequisites ## Property tests of conversion and admission, 100,000 objects per pair of versions (minutes)
	@echo "== property tests of conversion and admission"
	@$(PROPERTIES)

properties-long: prerequisites ## The same with 1,000,000 other objects (about an hour)
	@QUORATE_CASES=1000000 QUORATE_SEED=$${QUORATE_SEED:-$$(date +%s)} $(PROPERTIES)

convergence-long: prerequisites ## The model tests with three faults (minutes)
	@$(CARGO) test --locked --profile properties --package quorate --lib storage_migration::model -- --ignored
	@$(CARGO) test --locked --profile properties --package quorate --test convergence -- --ignored --nocapture

# Optimised, like the released binary.
WEBHOOK_ABUSE = $(CARGO) test --locked --profile properties --package quorate --test webhook_abuse
webhook-abuse: prerequisites ## Hostile clients at the webhook server, beside legitimate ones
	@echo "== hostile clients at the webhook server"
	@$(WEBHOOK_ABUSE)

webhook-abuse-long: prerequisites ## The same with 100,000 hostile requests (many minutes)
	@QUORATE_ATTACKS=100000 QUORATE_SEED=$${QUORATE_SEED:-$$(date +%s)} $(WEBHOOK_ABUSE)

BENCH = $(CARGO) bench --quiet --locked --profile properties --package quorate --bench reviews --
bench: prerequisites ## Allocations and time per admission and conversion review
	@$(BENCH)

bench-check: prerequisites ## Fail if a review allocates 10% more than recorded
	@$(BENCH) --check

bench-record: prerequisites ## Record benches/reviews.md
	@$(BENCH) --record

##@ Tests on the local cluster
.PHONY: e2e e2e-long record-trace bench-cluster bench-write-gap cluster-test cluster-versions
e2e: prerequisites ## End-to-end tests on the local cluster (started if it does not run, and reset)
	@echo "== end-to-end tests"
	@$(CLUSTER) up
	@$(CLUSTER) reset
	@$(CLUSTER) images
	@$(CARGO) test --locked --package quorate --test e2e -- --test-threads 4

e2e-long: prerequisites ## End-to-end tests that take minutes each, with their figures
	@$(CLUSTER) up
	@$(CLUSTER) reset
	@$(CLUSTER) images
	@$(CARGO) test --locked --package quorate --test e2e -- --ignored --nocapture --test-threads 1

record-trace: prerequisites ## Record the observations and decisions of a real run, for the model to replay (minutes)
	@$(CLUSTER) up
	@$(CLUSTER) reset
	@$(CLUSTER) images
	@QUORATE_TRACE=$(CURDIR)/tests/convergence/trace.jsonl $(CARGO) test --locked --package quorate --test e2e -- \
		--ignored --nocapture every_action_completes_after_a_crash

bench-cluster: prerequisites ## The cost of a cluster: seconds, memory and API calls, beside a bare StatefulSet (a quarter of an hour)
	@$(CLUSTER) up
	@$(CLUSTER) reset
	@$(CLUSTER) images
	@$(CARGO) bench --quiet --locked --profile dev --package quorate --bench cluster

bench-write-gap: prerequisites ## The longest time without a write during an upgrade, with and without leader transfer (ten minutes)
	@$(CLUSTER) up
	@$(CLUSTER) reset
	@$(CLUSTER) images
	@$(CARGO) bench --quiet --locked --profile dev --package quorate --bench write_unavailability

cluster-test: prerequisites ## Tests of the local cluster itself; they stop the running one and start others
	@echo "== lifecycle of the local cluster"
	@$(CARGO) test --locked --package quorate-cluster --test lifecycle -- --test-threads 1

cluster-versions: prerequisites ## End-to-end tests on every Kubernetes version of the local cluster (long)
	@versions=$$($(CLUSTER) versions); for version in $$versions; do \
		$(CLUSTER) down; \
		$(CLUSTER) --kubernetes $$version up; \
		$(MAKE) e2e; \
	done

##@ The local cluster
.PHONY: cluster-up cluster-down cluster-reset kubeconfig kubectl-path images s3
cluster-up: prerequisites ## Start the local cluster, or repair it
	@$(CLUSTER) up

cluster-down: prerequisites ## Stop the local cluster and remove everything but the cache
	@$(CLUSTER) down

cluster-reset: prerequisites ## Delete everything that was created in the local cluster
	@$(CLUSTER) reset

kubeconfig: prerequisites ## Print the path of the kubeconfig (make -s kubeconfig)
	@$(CLUSTER) kubeconfig

kubectl-path: prerequisites ## Print the directory of kubectl (make -s kubectl-path)
	@$(CLUSTER) programs

images: prerequisites ## Build all images and import them into the local cluster
	@$(CLUSTER) images

s3: prerequisites ## Start an S3 server in the local cluster and print its endpoint
	@$(CLUSTER) s3

##@ The product
.PHONY: install crds manifests
install: prerequisites ## Install this checkout into the cluster of the current kubeconfig, else into the local one
	@$(CLUSTER) install

crds: prerequisites ## Generate crds/ from the types
	@$(QUORATE) crds --write crds

manifests: prerequisites ## Generate deploy/ from the code, except the samples
	@$(QUORATE) manifests --write deploy

##@ Housekeeping
.PHONY: help prerequisites
help: ## Print this help
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Cargo identifies workspace packages by their path inside the workspace. Two clones that share a target
# directory would use each other's binaries, so those are removed when another clone builds.
prerequisites:
	@.ci/prerequisites
