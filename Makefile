# The one command surface of this project. `make` prints what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# There is one cluster on a machine, and it is not shared.
.NOTPARALLEL:

# What is dear to make lives in the user's cache, so that a fresh clone does not start from zero.
QUORATE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quorate
CARGO_TARGET_DIR ?= $(QUORATE_CACHE)/target
# An error that is a test's own text needs no backtrace.
RUST_LIB_BACKTRACE ?= 0
export QUORATE_CACHE CARGO_TARGET_DIR RUST_LIB_BACKTRACE

CARGO := cargo
CLUSTER = $(CARGO) run --quiet --locked --package quorate-cluster --bin quorate-cluster --
QUORATE = $(CARGO) run --quiet --locked --package quorate --bin quorate --

##@ The two commands
.PHONY: demo test
demo: prerequisites ## Show the product: a local cluster, the operator in it, what it can do
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

unit: prerequisites ## Tests that need no cluster (seconds)
	@echo "== unit tests"
	@$(CARGO) test --locked --workspace --lib --bins --test agent --test architecture --test cli --test convergence --test docs --test fuzz --test leader_election --test manifests --test denied --test admission_reviews --test rules --test samples

# Optimised, because a property is tried on 100,000 objects for each pair of versions.
PROPERTIES = $(CARGO) test --locked --profile properties --package quorate --test admission --test conversion
properties: prerequisites ## What conversion promises, tried on 100,000 objects for each pair of versions (minutes)
	@echo "== properties of the conversion"
	@$(PROPERTIES)

properties-long: prerequisites ## The same on 1,000,000 other objects (about an hour)
	@QUORATE_CASES=1000000 QUORATE_SEED=$${QUORATE_SEED:-$$(date +%s)} $(PROPERTIES)

convergence-long: prerequisites ## The walk through every state of a cluster with three faults (minutes)
	@$(CARGO) test --locked --profile properties --package quorate --lib storage_migration::model -- --ignored
	@$(CARGO) test --locked --profile properties --package quorate --test convergence -- --ignored --nocapture

# Optimised, like the program that people run.
WEBHOOK_ABUSE = $(CARGO) test --locked --profile properties --package quorate --test webhook_abuse
webhook-abuse: prerequisites ## Hostile clients at the webhook server, beside legitimate ones
	@echo "== hostile clients at the webhook server"
	@$(WEBHOOK_ABUSE)

webhook-abuse-long: prerequisites ## The same with 100,000 hostile requests (many minutes)
	@QUORATE_ATTACKS=100000 QUORATE_SEED=$${QUORATE_SEED:-$$(date +%s)} $(WEBHOOK_ABUSE)

BENCH = $(CARGO) bench --quiet --locked --profile properties --package quorate --bench reviews --
bench: prerequisites ## What a review costs in allocations and time
	@$(BENCH)

bench-check: prerequisites ## Fail when a review allocates a tenth more than is recorded
	@$(BENCH) --check

bench-record: prerequisites ## Record benches/reviews.md
	@$(BENCH) --record

##@ Tests on the real cluster
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

cluster-test: prerequisites ## The local cluster's own tests: they end the one that runs, and start others
	@echo "== the local cluster comes, goes and survives crashes"
	@$(CARGO) test --locked --package quorate-cluster --test lifecycle -- --test-threads 1

cluster-versions: prerequisites ## End-to-end tests on every Kubernetes version of the local cluster (long)
	@versions=$$($(CLUSTER) versions); for version in $$versions; do \
		$(CLUSTER) down; \
		$(CLUSTER) --kubernetes $$version up; \
		$(MAKE) e2e; \
	done

##@ The local cluster
.PHONY: cluster-up cluster-down cluster-reset kubeconfig kubectl-path images s3
cluster-up: prerequisites ## Start the local cluster, or mend it
	@$(CLUSTER) up

cluster-down: prerequisites ## End it; nothing stays but the cache
	@$(CLUSTER) down

cluster-reset: prerequisites ## Delete what was not there when it was fresh
	@$(CLUSTER) reset

kubeconfig: prerequisites ## Print the path of its kubeconfig (make -s kubeconfig)
	@$(CLUSTER) kubeconfig

kubectl-path: prerequisites ## Print the folder with its kubectl (make -s kubectl-path)
	@$(CLUSTER) programs

images: prerequisites ## Build all images and import them into it
	@$(CLUSTER) images

s3: prerequisites ## Start an S3 server in it and print its endpoint
	@$(CLUSTER) s3

##@ The product
.PHONY: install crds manifests
install: prerequisites ## Install this checkout into the cluster of the current kubeconfig, else into the local one
	@$(CLUSTER) install

crds: prerequisites ## Write crds/ from the types
	@$(QUORATE) crds --write crds

manifests: prerequisites ## Write deploy/ from the code, but for the samples
	@$(QUORATE) manifests --write deploy

##@ Housekeeping
.PHONY: help prerequisites
help: ## Print this help
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Cargo tells packages of a workspace apart by their path inside it. Two clones that share a target folder
# would take each other's programs for their own, so those are dropped when another clone comes along.
prerequisites:
	@.ci/prerequisites
