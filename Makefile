# Run `make` without arguments for a list of targets.
#
# Programs are built without cgo, as users build them. The race detector, libfabric (ofi)
# and PMIx need a C compiler.

export CGO_ENABLED ?= 0

GO          ?= go
# What runs tests; .ci/run records their times.
GOTEST      ?= $(GO) test
BIN         := $(CURDIR)/bin
STATICCHECK := v0.8.2
FUZZTIME    ?= 5s
# Numbers of ranks for the API tests.
RANKS       ?= 1 2 3 4 5
# Systems and architectures of cross.
CROSS       ?= linux/arm64 darwin/arm64 freebsd/amd64 windows/amd64
# Further numbers of ranks for the tests of collectives.
MORE_RANKS  ?= 8 16
# Time limit of the tests of a package, and of a job of several processes.
TIMEOUT     ?= 300s
# Arguments of the test binary in multi, for example: make multi TESTS='-test.run Probe'
TESTS       ?=
# Arguments of bench/peers, for example: make bench-peers PEERS='-only latency'
PEERS       ?=
# The folder that words checks; default: all.
UNDER       ?=

.DEFAULT_GOAL := help
.PHONY: help build check test race nightly check-off multi multi-race fuzz words lines lint cross explore prove results bench-peers bench-verbs-loss bench-verbs-vm iwarp ofi test-cabi test-mpich test-debian test-hosts verify-apps test-channels test-launchers test-verbs-vm interop-siw ci clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/muster
	$(GO) build -o $(BIN)/muster ./cmd/muster

# The C interface: libmpich.so.12, its core, and the link with which programs are built.
CABI         := $(BIN)/cabi
CABI_LDFLAGS ?= -s -w

.PHONY: cabi
cabi: ## build libmpich.so.12 and libmpi.so.40, with which programs built for MPICH and Open MPI run on Muster
	@mkdir -p $(CABI)
	CGO_ENABLED=1 $(GO) build -tags cabi -buildmode=c-shared -ldflags='$(CABI_LDFLAGS)' -o $(CABI)/libmuster_core.so ./cabi/lib
	@set -e; for pair in mpich:libmpich.so.12 openmpi:libmpi.so.40 mpi5:libmpi_abi.so.1; do \
		set -x; $(CC) -O2 -Wall -Wextra -fPIC -shared -DABI_HEADER="\"$${pair%%:*}_gen.h\"" -Wl,-soname,$${pair#*:} -o $(CABI)/$${pair#*:} \
			cabi/front/front.c cabi/front/direct.c cabi/front/$${pair%%:*}*.c -ldl -lpthread; { set +x; } 2>/dev/null; \
	done
	@ln -sf libmpich.so.12 $(CABI)/libmpi.so.12; ln -sf libmpich.so.12 $(CABI)/libmpich.so; ln -sf libmpi_abi.so.1 $(CABI)/libmpi_abi.so; rm -f $(CABI)/libmuster_core.h
	@mkdir -p $(CABI)/include; cp -r cabi/include/. $(CABI)/include
	@for name in mpicc mpicxx mpifort mpicc_abi; do ln -sf muster $(BIN)/muster-$$name; done

# Where install puts what it installs: DESTDIR is for packages.
PREFIX  ?= /usr/local
DESTDIR ?=

.PHONY: install
install: build cabi ## install muster, libraries, compilers, mpi.pc, a module file and manual pages below PREFIX (/usr/local)
	./tests/release/install.sh $(BIN) $(DESTDIR)$(PREFIX)

test-cabi: cabi build ## run C programs on libmpich.so.12, check its symbols and its generated files
	CGO_ENABLED=1 $(GO) vet -tags cabi ./cabi/...
	$(GOTEST) -tags cabi -count 1 -parallel 2 -timeout $(TIMEOUT) ./cabi -args -cabi.bin $(BIN)
	$(GOTEST) -tags cabi -count 1 -timeout $(TIMEOUT) -run TestInstall ./tests/release -args -release.bin $(BIN)
	$(GO) test -count 1 -timeout $(TIMEOUT) -run TestSamplesOfGuides/c-programs . -args -samples.bin $(BIN)
	$(GOTEST) -timeout 600s ./cabi/... # with the limit of test, which may have run them

# Arguments of tests/mpich, for example: make test-mpich MPICH='-all -reference -only pt2pt'
MPICH ?=

test-mpich: cabi build ## run the tests of MPICH's suite that must pass on libmpich.so.12; MPICH='-h' for more
	$(GO) run ./tests/mpich -bin $(BIN) $(MPICH)

# Arguments of tests/debian, for example: make test-debian DEBIAN='-all -reference -only scalapack'
DEBIAN ?=

test-debian: cabi build ## run NetPIPE, HPCC, tests of ScaLAPACK and of coarrays on our libraries; DEBIAN='-h' for more
	$(GO) run ./tests/debian -bin $(BIN) $(DEBIAN)

# Arguments of tests/imports, for example: make test-imports IMPORTS='-only petsc'
IMPORTS ?=

.PHONY: test-imports
test-imports: cabi ## check what all packages of Debian that need MPI import of it (gigabytes); IMPORTS='-h' for more
	$(GO) run ./tests/imports -bin $(BIN) $(IMPORTS)

# Arguments of tests/check, for example: make check CHECK='-base HEAD~3 -budget 10m'
CHECK ?=

check: ## before each commit: build, vet, house rules, tests of what changed and of what imports it (90 s)
	@$(GO) run ./tests/check $(CHECK)

# The tests that start jobs use this muster, instead of linking one each.
test race check-off: export TEST_MUSTER := $(BIN)/muster

test: build ## run the tests, ranks as goroutines
	$(GOTEST) -timeout 600s ./...
	$(GOTEST) -count 1 -timeout 120s -run TestCleanPrograms ./tests/advise # alone: beside other tests its runs do not count

# Folders without goroutines (house_imports_test.go checks the list and them), in which the
# race detector has nothing to detect.
PURE := internal/p2p internal/dtype internal/sched internal/coll internal/rma internal/mpiio internal/trace internal/advise internal/traffic internal/ft sim rdma/recvpool rdma/internal/ddp rdma/internal/reliable

# Folders that start no goroutines themselves, and whose tests are more uses of package mpi
# or read files: under the race detector only at night.
RACE_AT_NIGHT := apps bench/results bench/peers tests

# Not those of the root package and of releases, which read files and start other programs.
# make race SHORT= also runs the long tests and those of the folders above, as make nightly does.
SHORT ?= -short

race: build ## the same under the race detector, without the pure folders and what is for the night
	CGO_ENABLED=1 $(GOTEST) -race $(SHORT) -timeout 900s $$($(GO) list ./... | grep -v -e '/mpi$$' -e '/muster$$' -e '/tests/release$$' $(PURE:%=-e '/%$$') $(if $(SHORT),$(RACE_AT_NIGHT:%=-e 'muster/%\(/\|$$\)'))) ./cmd/muster
	CGO_ENABLED=1 MUSTER_CHECK=off $(GOTEST) -race $(SHORT) -timeout 1200s ./mpi # other packages run with check mode

# What takes longer than CI may, in hours; it goes on after a failure (.ci/nightly).
nightly: ## run all that takes too long for each change, and write a page of what failed: bin/nightly.md (hours)
	./.ci/nightly

check-off: build
	MUSTER_CHECK=off $(GOTEST) -timeout 600s ./mpi

multi: build ## run the API tests on processes: muster run -n 1..5, mpiexec.hydra -n 4
	@$(MAKE) --no-print-directory processes KIND=mpi.test

multi-race: build ## the same under the race detector
	@CGO_ENABLED=1 $(MAKE) --no-print-directory processes KIND=mpi.race.test FLAGS=-race

# Under a launcher the tests of package mpi are collective, so every rank runs all of them;
# see package mpitest.
.PHONY: processes
processes:
	@set -eu; \
	$(GO) test -c $(FLAGS) -o $(BIN)/$(KIND) ./mpi; \
	cd mpi; \
	for n in $(RANKS); do \
		echo "muster run -n $$n $(KIND)"; \
		timeout -k 10 $(TIMEOUT) $(BIN)/muster run -n $$n $(BIN)/$(KIND) -test.timeout $(TIMEOUT) $(TESTS); \
	done; \
	for n in $(if $(TESTS),,$(MORE_RANKS)); do \
		echo "muster run -n $$n $(KIND) -test.run TestCollectiveMatrix"; \
		timeout -k 10 $(TIMEOUT) $(BIN)/muster run -n $$n $(BIN)/$(KIND) -test.timeout $(TIMEOUT) -test.run TestCollectiveMatrix; \
	done; \
	echo "MUSTER_SPECULATE=auto muster run -n 3 $(KIND)"; \
	MUSTER_SPECULATE=auto timeout -k 10 $(TIMEOUT) $(BIN)/muster run -n 3 $(BIN)/$(KIND) -test.timeout $(TIMEOUT) $(TESTS); \
	if command -v mpiexec.hydra >/dev/null; then \
		echo "mpiexec.hydra -n 4 $(KIND)"; \
		timeout -k 10 $(TIMEOUT) mpiexec.hydra -n 4 $(BIN)/$(KIND) -test.timeout $(TIMEOUT) $(TESTS); \
	else echo "skipped: mpiexec.hydra is not installed (Debian package mpich)"; fi

# Executes the algorithms that `make prove` proves: MATRIX_RANKS ranks in one process under
# the race detector, then jobs of MATRIX_JOBS processes.
MATRIX_RANKS ?= $(shell seq -s , 1 33)
MATRIX_JOBS  ?= 2 3 5 8 16

.PHONY: coll-matrix
coll-matrix: build ## execute every algorithm of every collective, 1 to 33 ranks, and count (long)
	@set -eu; \
	CGO_ENABLED=1 $(GO) test -c -race -o $(BIN)/mpi.race.test ./mpi; \
	$(GO) test -c -o $(BIN)/mpi.test ./mpi; \
	cd mpi; \
	echo "one process under the race detector"; \
	$(BIN)/mpi.race.test -test.run TestCollectiveMatrix -test.timeout 180m -matrix.full -matrix.ranks $(MATRIX_RANKS); \
	for n in $(MATRIX_JOBS); do \
		echo "muster run -n $$n"; \
		timeout -k 10 1200 $(BIN)/muster run -n $$n $(BIN)/mpi.test -test.run TestCollectiveMatrix -test.timeout 20m -matrix.full -matrix.ranks $$n; \
	done

# Number of goroutines as ranks in the test of their times and memory.
SCALE_RANKS ?= 50000

.PHONY: scale
scale: ## run collectives of 50,000 goroutines as ranks, check memory and times
	$(GOTEST) ./mpi -run TestCollectivesOfManyRanks -v -args -scale.ranks $(SCALE_RANKS)

# Number of outstanding sends in the test of their time and memory.
OUTSTANDING ?= 10000

.PHONY: outstanding
outstanding: build ## start 10,000 sends of each size to one peer on each channel, show time and memory
	@set -eu; $(GO) test -c -o $(BIN)/mpi.test ./mpi; cd mpi; \
	run() { for size in 8 16384 204800 1048576; do timeout -k 10 $(TIMEOUT) "$$@" -test.run TestManyOutstandingSends -test.v \
		-outstanding.count $(OUTSTANDING) -outstanding.size $$size | grep -E 'sends of|FAIL|panic'; done; }; \
	echo "shared memory"; run $(BIN)/muster run -n 2 $(BIN)/mpi.test; \
	export MUSTER_NETWORK=iwarp MUSTER_NO_SHARED_MEMORY=1; \
	for ch in rd rc hybrid ud; do echo "$$ch"; export MUSTER_CHANNEL=$$ch; run $(BIN)/muster run -n 2 $(BIN)/mpi.test; done; \
	unset MUSTER_CHANNEL; \
	if pkg-config --exists libfabric; then \
		CGO_ENABLED=1 $(GO) build -tags ofi -o $(BIN)/muster-ofi ./cmd/muster; \
		CGO_ENABLED=1 $(GO) test -c -tags ofi -o $(BIN)/mpi.ofi.test ./mpi; \
		echo "ofi:net"; MUSTER_NETWORK=ofi:net MUSTER_INTERFACE=lo run $(BIN)/muster-ofi run -n 2 $(BIN)/mpi.ofi.test; \
	else echo "skipped: ofi needs libfabric-dev and pkg-config"; fi

# Skips a target if libfabric's headers are not installed.
HAVE_OFI = pkg-config --exists libfabric || { echo "skipped: needs libfabric-dev and pkg-config"; exit 0; }

# Tests of cmd/muster that libfabric makes a difference to.
OFI_TESTS ?= Bench|Verbs|Info|Doctor|Explain

ofi: ## test the device on libfabric, and messages over it between processes
	@$(HAVE_OFI); set -eux; export CGO_ENABLED=1; \
	$(GO) vet -tags ofi ./rdma/ofi/... ./tests/hosts ./mpi ./cmd/muster; \
	$(GOTEST) -tags ofi -timeout $(TIMEOUT) ./rdma/ofi; \
	$(GOTEST) -tags ofi -timeout $(TIMEOUT) -run '$(OFI_TESTS)' ./cmd/muster; \
	$(GO) build -tags ofi -o $(BIN)/muster-ofi ./cmd/muster; \
	$(GO) test -c -tags ofi -o $(BIN)/mpi.ofi.test ./mpi; \
	cd mpi; export MUSTER_NO_SHARED_MEMORY=1 MUSTER_INTERFACE=lo; \
	for provider in net 'tcp;ofi_rxm'; do for n in 1 3; do \
		MUSTER_NETWORK="ofi:$$provider" timeout -k 10 $(TIMEOUT) $(BIN)/muster-ofi run -n $$n $(BIN)/mpi.ofi.test -test.timeout $(TIMEOUT) $(TESTS); \
	done; done

# The allocation tests are skipped here, because pools may still grow on a busy machine. The
# suites of the devices check that they allocate nothing in the steady state.
iwarp: build ## messages over software iWARP between processes: datagrams, connections, both, with rings, encrypted
	@set -eux; \
	$(GO) test -c -o $(BIN)/mpi.test ./mpi; \
	cd mpi; export MUSTER_NETWORK=iwarp MUSTER_NO_SHARED_MEMORY=1; \
	for how in 'hybrid srq off AllocateNothing' 'rc few off AllocateNothing' 'rd rings off AllocateNothing' 'ud srq off AllocateNothing' \
		'hybrid srq on AllocateNothing|ContiguousLayoutsAreNotCopied'; do set -- $$how; \
		MUSTER_CHANNEL=$$1 MUSTER_EAGER=$$2 MUSTER_ENCRYPT=$$3 timeout -k 10 $(TIMEOUT) $(BIN)/muster run -n 3 $(BIN)/mpi.test -test.timeout $(TIMEOUT) -test.skip "$$4" $(TESTS); \
	done

test-channels: ## test lossy networks, cut cables, floods, stopped and killed ranks on a lab (needs root)
	$(GO) vet -tags channels ./tests/channels ./rdma/soft
	$(GOTEST) -tags channels -count 1 -timeout 600s -v ./tests/channels
	$(GOTEST) -tags channels -count 1 -timeout 300s -v -run RealLink ./rdma/soft

# Time, first seed, rounds and other arguments of tests/soak: make soak SEED=7 ROUNDS=1
SOAK   ?= 3m
SEED   ?= 0
ROUNDS ?= 0

.PHONY: soak
soak: ## run random programs under random faults for SOAK (3m) and print their seeds (needs root)
	@mkdir -p $(BIN)
	$(GO) run ./tests/soak -time $(SOAK) -seed $(SEED) -rounds $(ROUNDS) -bin $(BIN)

.PHONY: test-respawn
test-respawn: build ## kill ranks and hosts of jobs that replace them, and start 1,000 jobs from one (minutes; needs root)
	TEST_MUSTER=$(BIN)/muster $(GO) test -count 1 -timeout 30m -run 'TestRespawn$$|TestSpawn/cycles' ./mpi -respawn.seeds 500 -spawn.cycles 1000
	TEST_MUSTER=$(BIN)/muster $(GO) test -count 1 -timeout 10m -run TestRespawn ./tests/recover -recover.seeds 40

.PHONY: test-files
test-files: build ## run 10,000 random programs on files, kill 200 ranks in collective writes, and fuzz views and plans (minutes)
	TEST_MUSTER=$(BIN)/muster $(GO) test -count 1 -timeout 60m -run 'TestFileRandom|TestKillInFiles' ./mpi -file.programs 1250 -kill.files 200
	@for target in FuzzDomains FuzzViews; do $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime 2m -parallel 1 ./internal/mpiio || exit; done

test-hosts: ## run the tests on four hosts: network namespaces (needs root)
	@$(HAVE_OFI); CGO_ENABLED=1 $(GOTEST) -tags ofi -count 1 -timeout 900s -v ./tests/hosts

.PHONY: test-stalls
test-stalls: ## count rounds of alltoall that stall on four hosts (needs root and a quiet machine)
	@$(HAVE_OFI); CGO_ENABLED=1 $(GOTEST) -tags ofi -count 1 -timeout 900s -v ./tests/hosts -run TestAlltoallDoesNotStall -args -stalls.most 2

verify-apps: ## verify the NAS kernels of all classes on 1 to 16 ranks, one host and four (needs root, minutes)
	@$(HAVE_OFI); CGO_ENABLED=1 $(GOTEST) -tags ofi -count 1 -timeout 120m -v ./tests/hosts -run TestNASKernels -args -apps.classes S,W,A -apps.ranks 1,2,4,8,16 -apps.squares 1,4,9,16

test-launchers: ## run under Slurm, Hydra on two hosts, Open MPI's mpirun, as an indexed Job; MPICH under muster run
	@if pkg-config --exists libfabric; then \
		CGO_ENABLED=1 $(GO) vet -tags launchers,pmix,ofi ./tests/launchers ./examples/kubernetes ./internal/pmi ./internal/pmix && \
		CGO_ENABLED=1 $(GOTEST) -tags pmix -timeout $(TIMEOUT) ./internal/pmix; \
	else echo "libfabric-dev is missing: some tests are skipped"; fi
	CGO_ENABLED=1 $(GOTEST) -tags launchers -count 1 -timeout $(TIMEOUT) ./tests/launchers ./examples/kubernetes

# Until Go 1.27, fuzzing can fail with "context deadline exceeded" when its time ends
# (go.dev/issue/75804): that run found nothing. A failing input fails always. Two targets run
# at a time, because half of a short run is the start.
fuzz: ## run every fuzz target for FUZZTIME (5s)
	@mkdir -p $(BIN)
	@grep -rn --include='*_test.go' '^func Fuzz' . | sed -E 's|^(.*)/[^/]*:[0-9]+:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort | \
	xargs -P 2 -L 1 sh -c '\
		dir=$$1 target=$$2 log=$(BIN)/fuzz-$$(basename $$1)-$$2.log; \
		if ! $(GO) test -run "^$$" -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -parallel 1 -timeout $(TIMEOUT) "$$dir" >$$log 2>&1 && \
			{ grep -q "Failing input" $$log || ! grep -q "context deadline exceeded" $$log; }; then \
			cat $$log; exit 255; \
		fi; \
		echo "$$dir $$target: $$(tail -n 1 $$log)"; rm $$log' fuzz

words: ## list words that the vocabulary avoids; UNDER=folder for one folder
	$(GO) test -count 1 -run 'TestVocabulary$$' . -args -words.under "$(UNDER)"

lines: ## count the lines of Go and C in git, without tests and generated files
	@git ls-files '*.go' '*.c' '*.h' ':!*_test.go' | xargs grep -LE '^(//|/\*) Code generated' | xargs cat | wc -l

lint: $(BIN)/staticcheck-$(STATICCHECK) ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(BIN)/staticcheck-$(STATICCHECK) ./...

$(BIN)/staticcheck-$(STATICCHECK):
	@mkdir -p $(BIN)
	GOBIN=$(BIN) $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK)
	@mv $(BIN)/staticcheck $@

cross: ## build and vet for the systems and architectures of docs/reference/platforms.md
	@set -eu; for target in $(CROSS); do \
		echo "$$target"; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build ./...; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) vet ./...; \
	done

# The portable path (docs/reference/platforms.md) on Linux: the device, then the API tests on
# PORTABLE_RANKS processes, two jobs at a time, and between two hosts of a lab. The allocation
# tests are skipped as in iwarp, and the tests that have tshark read frames, because they use
# no sockets. The tests between hosts are skipped without root.
PORTABLE_RANKS ?= 4 3 2 1
PORTABLE_SKIP  := AllocateNothing

.PHONY: portable
portable: ## test the path for other systems, TCP by package net, on Linux: the device, the API tests on 1 to 4 processes, and on two hosts
	@set -eu; \
	$(GO) vet -tags muster_portable ./rdma/... ./internal/engine ./mpi ./cmd/muster ./tests/portable; \
	$(GOTEST) -vet off -tags muster_portable -skip '^TestTshark' -timeout $(TIMEOUT) ./rdma/internal/soft ./rdma/iwarp; \
	$(GO) build -tags muster_portable -o $(BIN)/muster-portable ./cmd/muster; \
	$(GO) test -c -vet off -tags muster_portable -o $(BIN)/mpi.portable.test ./mpi; \
	cd mpi; printf '%s\n' $(PORTABLE_RANKS) | xargs -P 2 -I {} sh -c '\
		job="muster-portable run -n {} mpi.portable.test"; log=$(BIN)/portable-{}.log; \
		if timeout -k 10 $(TIMEOUT) $(BIN)/muster-portable run -n {} $(BIN)/mpi.portable.test -test.timeout $(TIMEOUT) -test.skip "$(PORTABLE_SKIP)" $(TESTS) >$$log 2>&1; \
		then echo "$$job: ok"; else cat $$log; echo "$$job: failed"; exit 1; fi'; \
	cd ..; $(GOTEST) -vet off -tags muster_portable -count 1 -timeout $(TIMEOUT) ./tests/portable -args -portable.bin $(BIN)

explore: ## check the protocols under every event order of small programs (long)
	$(GOTEST) ./internal/p2p -run TestExplore -v -timeout 120m -explore.full
	$(GOTEST) ./internal/ft -run TestExplore -v -timeout 30m -explore.full

prove: ## prove every algorithm of every collective for 1 to 33 ranks (minutes)
	$(GOTEST) ./internal/coll -run TestMatrix -v -timeout 60m -prove.full

# Which tables "make results" measures, for example: make results ONLY=latency,'coll-*-2'
ONLY        ?=
# What it passes to bench/peers besides; more rounds take longer: make results RESULTS='-rounds 7'
RESULTS     ?= -rounds 3 -settle 3s -budget 25m

results: ## measure the tables in docs/results (about 20 minutes) and render the pages
	$(GO) run ./bench/peers $(RESULTS) $(if $(ONLY),-only '$(ONLY)') $(PEERS)

bench-peers: ## the same with bench/peers' own defaults and PEERS: five rounds, no limit of time (long)
	$(GO) run ./bench/peers $(PEERS)

bench-verbs-loss: build ## bandwidth of the datagram device over a cable of 1 Gbit/s that loses 1 % (needs root)
	$(BIN)/muster bench verbs-bw --device tcp,rd --sizes 1M --time 3s --rounds 3 --rate 1gbit --loss 0.01

test-verbs-vm: ## run over libfabric's verbs on soft-iWARP and soft-RoCE in a virtual machine (minutes)
	./tests/verbsvm/run.sh

interop-siw: ## test rdma/iwarp against Linux's soft-iWARP in a virtual machine (minutes)
	VERBSVM_DEVICES=siw VERBSVM_STEPS='device iwarp' ./tests/verbsvm/run.sh

bench-verbs-vm: ## measure rping, our devices, and frequently used buffers over verbs in one virtual machine (minutes)
	VERBSVM_STEPS='device verbs bench-buffers' ./tests/verbsvm/run.sh

ci: ## run all checks that a change must pass; first installs the Debian packages that are missing (root or sudo)
	./.ci/run

# Static binaries, an archive for each system, packages for Linux, and checksums. The paths, times and
# the commit of the checkout are left out of the output, for reproducible builds.
RELEASE_TARGETS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: release release-twice site
release: ## build binaries, archives, packages, an OCI image, recipes and checksums into bin/release
	GO='$(GO)' ./tests/release/build.sh $(BIN)/release $(RELEASE_TARGETS)

site: ## build the site from docs into bin/site, and follow its links
	$(GO) run ./tests/site -out $(BIN)/site

release-twice: ## check what a release contains, and that two are the same, byte for byte
	$(GOTEST) -tags release -count 1 -timeout 1800s ./tests/release
	GO='$(GO)' ./tests/release/build.sh $(BIN)/release $(RELEASE_TARGETS)
	GO='$(GO)' ./tests/release/build.sh $(BIN)/release-again $(RELEASE_TARGETS)
	cmp $(BIN)/release/SHA256SUMS $(BIN)/release-again/SHA256SUMS && rm -r $(BIN)/release-again

clean: ## remove build output
	rm -rf $(BIN)
