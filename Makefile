# make shows what there is; every target does its own set-up.
GO      ?= go
BIN     := bin/hostler
LINT    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GENERATE_CHECK := docs/configuration.md

.DEFAULT_GOAL := help
.PHONY: help build demo redis test test-model fuzz lint generate check bench kill nightly clean

help: ## show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 14

build: ## build bin/hostler
	$(GO) build -trimpath -o $(BIN) ./cmd/hostler

demo: build ## watch proxies being leased, cooled, recovered and scored
	$(BIN) demo

redis: ## install redis-server, which tests start, where it is missing
	@command -v redis-server >/dev/null || { \
	  command -v apt-get >/dev/null || { echo 'redis-server is missing: install Redis 7 and run this again' >&2; exit 1; }; \
	  as=; [ "$$(id -u)" = 0 ] || as=sudo; \
	  $$as apt-get update -qq && $$as apt-get install -y -qq redis-server >/dev/null; }

test: redis ## run all tests, with the race detector; brings what they need
	$(GO) mod download
	$(GO) vet ./...
	$(GO) test -race ./...
	$(MAKE) --no-print-directory test-model

test-model: ## play 10,000 sequences of 200 operations against the invariants
	$(GO) test ./internal/pool -run TestStateMachine -count=1 -timeout 20m -rapid.checks=10000 -rapid.steps=200

FUZZTIME ?= 30s
fuzz: ## fuzz every reader of outside input, the main ones for FUZZTIME
	$(GO) test ./internal/proxy -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME)
	for reader in List Lines CSV JSON JSONL; do $(GO) test ./internal/proxy -run '^$$' -fuzz "^FuzzRead$$reader\$$" -fuzztime 10s || exit 1; done
	$(GO) test ./internal/config -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME)
	$(GO) test ./internal/source -run '^$$' -fuzz '^FuzzMapping$$' -fuzztime 10s
	$(GO) test ./internal/judge -run '^$$' -fuzz '^FuzzFacts$$' -fuzztime $(FUZZTIME)
	$(GO) test ./internal/pool -run '^$$' -fuzz '^FuzzWindows$$' -fuzztime 10s
	$(GO) test ./internal/store/embedded -run '^$$' -fuzz '^FuzzRestore$$' -fuzztime 10s
	$(GO) test ./internal/rules -run '^$$' -fuzz '^FuzzRules$$' -fuzztime 10s

lint: ## lint everything
	$(GO) run $(LINT) run ./...

generate: ## write generated files anew
	$(GO) generate ./...

check: generate lint test ## what has to hold before a commit lands
	git diff --exit-code -- $(GENERATE_CHECK)

KILLS ?= 10
kill: build ## kill -9 the daemon under load, KILLS times, and look for losses
	HOSTLER_KILLS=$(KILLS) $(GO) test ./test/e2e -run TestKill -count=1 -timeout 30m -v

bench: ## measure; docs/performance.md has the figures
	$(GO) test ./internal/proxy -run '^$$' -bench . -cpu 1
	$(GO) test ./internal/app -run '^$$' -bench Import -benchtime 500000x
	$(GO) test ./internal/pool -run '^$$' -bench . -benchtime 300000x
	$(GO) test ./internal/store/embedded -run '^$$' -bench . -benchtime 100000x
	$(GO) test ./internal/keeper -run '^$$' -bench . -benchtime 3000x

nightly: ## long runs: many seeds, 50 kills
	$(GO) test ./internal/pool -run TestStateMachine -count=1 -timeout 3h -rapid.checks=500000 -rapid.steps=200
	$(MAKE) --no-print-directory kill KILLS=50
	$(MAKE) --no-print-directory fuzz FUZZTIME=10m

clean: ## remove what was built
	rm -rf bin
