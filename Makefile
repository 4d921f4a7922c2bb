# Written for GNU make 3.81 (macOS) and newer. `make` alone lists the targets.
# What takes more than a few lines of shell stands in scripts/.

GO       ?= go
FUZZTIME ?= 60s
# Test programs that run at one time; each may run database servers. Empty: see scripts/test.sh.
TESTPROCS ?=
# What one package may take.
TESTTIMEOUT ?= 45m
# The kind of keys of test-kind; empty: each that counts.
KIND     ?=

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION) -X main.commit=$(COMMIT)

.PHONY: help build run test servers test-kind test-matrix torture lint fmt docs check fuzz bench trip deps deps-test deps-torture deps-clients deps-bench clean go-version

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: go-version ## build bin/seqproxy
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/seqproxy ./cmd/seqproxy

run: deps build ## try it: private servers, example shards, the proxy on 127.0.0.1:4306
	bin/seqproxy playground $(ARGS)

test: go-version deps-test ## what a developer waits for, also against real servers; CI runs more
	@GO='$(GO)' TESTPROCS='$(TESTPROCS)' TESTTIMEOUT='$(TESTTIMEOUT)' scripts/test.sh -short ./...

servers: ## unpack MySQL 9 and MariaDB 11.8 into .servers, for test-matrix
	@scripts/servers.sh

test-kind: go-version deps-test ## tests of the engine whose sequences have a kind of keys; KIND=BIT_REVERSED for one of them
	@GO='$(GO)' TESTTIMEOUT='$(TESTTIMEOUT)' scripts/test-kind.sh $(if $(KIND),"$(KIND)")

test-matrix: go-version deps-test ## all tests, on each server; MATRIX=all: none may be missing, =update: writes docs/compatibility-tables.md
	@GO='$(GO)' TESTPROCS='$(TESTPROCS)' TESTTIMEOUT='$(TESTTIMEOUT)' MATRIX='$(MATRIX)' scripts/test-matrix.sh

torture: go-version deps-torture ## break everything at random for 3 minutes and look for a key given twice; ARGS="-seed 7 -time 5m"
	$(GO) run -buildvcs=false ./test/torture/cmd $(ARGS)

lint: go-version ## formatting, go vet, staticcheck
	@GO='$(GO)' scripts/lint.sh

fmt: go-version ## format the code
	$(GO) tool -modfile=tools/go.mod gofumpt -w .

docs: go-version ## write the pages that are made of the program: config, metrics, errors, log events, alarms, statements, insert ids
	$(GO) generate ./conf
	$(GO) test -count=1 ./cmd/seqproxy -run 'TestThePageOf|TestMetricsAreThoseOfThePage|TestTheProxyIsAskedByEveryClient' -update
	$(GO) test -count=1 ./proxy -run TestThePageOfInsertIDs -update
	$(GO) test -count=1 ./test/bench -run TestThePageOfPerformance -update

check: lint build test ## lint, build, test: what to run before a commit

fuzz: go-version ## every fuzz target for FUZZTIME (60s); FUZZ=name for one
	@GO='$(GO)' FUZZTIME=$(FUZZTIME) scripts/fuzz.sh $(FUZZ)

bench: deps-bench build ## compare with a direct connection and with HAProxy
	$(GO) run -buildvcs=false ./test/bench $(ARGS)

trip: deps-test ## count the functions that run for one command; ARGS=-list names them
	@GO='$(GO)' scripts/trip.sh $(ARGS)

deps: ## install what `make run` needs beside Go: a MariaDB server and client
	@scripts/deps.sh server client

# The race detector needs a C compiler beside that.
deps-test:
	@scripts/deps.sh server client cc

# Without them a seed may choose another estate, and no clock jumps: the report says so.
deps-torture: deps-test
	@scripts/deps.sh galera || echo "Galera's library cannot be had: no estate is a cluster"
	@scripts/deps.sh faketime || echo "libfaketime cannot be had: no server's clock jumps"

# Some thirty packages: drivers of eight languages, mappers, and the tools of MariaDB.
deps-clients: deps-test ## install the drivers and tools that the tests try; without one, its test is skipped
	@scripts/deps.sh tools python php perl ruby java node django activerecord sqlalchemy hibernate sysbench mydumper galera haproxy
	@scripts/deps.sh faketime || echo "libfaketime cannot be had: no server's clock jumps in the tests"
	@cd test/clients/testdata/node && cmp -s package-lock.json node_modules/installed-lock.json || \
		{ npm ci --silent --no-audit --no-fund --ignore-scripts && cp package-lock.json node_modules/installed-lock.json; }
	@scripts/promtool.sh || test $$? -eq 3

deps-bench:
	@scripts/deps.sh server client haproxy

clean: ## remove what was built (.servers stays)
	rm -rf bin

go-version:
	@scripts/check-go.sh
