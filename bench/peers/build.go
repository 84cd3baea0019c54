package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/lab"
)

// binaries has the paths of the programs.
type binaries struct {
	openMPI, mpich, bare, bareUDP, muster, musterOFI string
	before                                           string // an earlier muster, given by the user
	onHost                                           string // the script that runs a command on a host
}

// program is a program that can be built.
type program int

const (
	openMPIProgram program = iota
	mpichProgram
	bareProgram
	bareUDPProgram
	musterProgram
	musterOFIProgram
	cabiProgram
)

// programs returns those that the contenders of a group need.
func (g *group) programs(peersOnly bool) []program {
	var list []program
	for _, c := range g.peers {
		if c != before {
			list = append(list, [...]program{openMPI: openMPIProgram, mpich: mpichProgram, bare: bareProgram, bareUDP: bareUDPProgram, oneRail: musterProgram, plain: musterProgram, gcm: musterProgram}[c])
		}
	}
	switch {
	case peersOnly:
		return list
	case g.inC:
		return append(list, musterProgram, cabiProgram)
	case g.over == sharedMemory || g.channel != "" || g.direct:
		return append(list, musterProgram)
	}
	return append(list, musterOFIProgram)
}

// possible leaves out the groups that this machine cannot run. It returns what the
// others need, and the reasons.
func possible(groups []*group, o options) (left []*group, needed []program, skipped []outcome) {
	for _, g := range groups {
		programs := g.programs(o.peersOnly)
		if err := g.obstacle(programs); err != nil {
			skipped = append(skipped, outcome{g.name, "skipped", err})
			continue
		}
		left, needed = append(left, g), append(needed, programs...)
	}
	slices.Sort(needed)
	return left, slices.Compact(needed), skipped
}

// obstacle returns why a group cannot run on this machine, or nil.
func (g *group) obstacle(programs []program) error {
	if slices.Contains(g.peers, before) && slices.Contains(programs, musterOFIProgram) {
		return errors.New("an earlier binary is compared without libfabric only")
	}
	if g.over == hosts {
		if err := lab.Usable(); err != nil {
			return err
		}
	}
	for p, tools := range map[program][]string{bareUDPProgram: {"cc"}, openMPIProgram: {"mpicc.openmpi", "mpirun.openmpi"}, mpichProgram: {"mpicc.mpich", "mpiexec.hydra"}} {
		for _, tool := range tools {
			if !slices.Contains(programs, p) {
				continue
			}
			if _, err := exec.LookPath(tool); err != nil {
				return fmt.Errorf("%s is not installed; on Debian: apt-get install gcc openmpi-bin libopenmpi-dev mpich libmpich-dev", tool)
			}
		}
	}
	if !slices.Contains(programs, bareProgram) && !slices.Contains(programs, musterOFIProgram) {
		return nil
	}
	for _, tool := range []string{"cc", "pkg-config"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed; on Debian: apt-get install gcc pkg-config libfabric-dev", tool)
		}
	}
	if exec.Command("pkg-config", "--exists", "libfabric").Run() != nil {
		return errors.New("libfabric's headers are not installed; on Debian: apt-get install libfabric-dev")
	}
	return nil
}

func build(ctx context.Context, root string, needed []program) (binaries, error) {
	here := filepath.Join(root, "bench", "peers")
	bin := binaries{
		openMPI:   filepath.Join(here, "bin", "peers-openmpi"),
		mpich:     filepath.Join(here, "bin", "peers-mpich"),
		bare:      filepath.Join(here, "bin", "ofi_bare"),
		bareUDP:   filepath.Join(here, "bin", "udp_bare"),
		muster:    filepath.Join(root, "bin", "muster"),
		musterOFI: filepath.Join(root, "bin", "muster-ofi"),
		onHost:    filepath.Join(here, "loops", "onhost.sh"),
	}
	if err := os.MkdirAll(filepath.Join(here, "bin"), 0o755); err != nil {
		return bin, err
	}
	for _, p := range needed {
		var err error
		switch p {
		case openMPIProgram:
			err = buildPeer(ctx, root, "mpicc.openmpi", bin.openMPI)
		case mpichProgram:
			err = buildPeer(ctx, root, "mpicc.mpich", bin.mpich)
		case bareProgram:
			err = buildBare(ctx, root, bin.bare)
		case bareUDPProgram:
			err = tool(ctx, root, nil, "cc", "-O2", "-Wall", "-Wextra", "-o", bin.bareUDP, "bench/peers/loops/udp_bare.c")
		case musterProgram:
			err = tool(ctx, root, nil, "go", "build", "-o", bin.muster, "./cmd/muster")
		case cabiProgram:
			err = tool(ctx, root, nil, "make", "cabi")
		case musterOFIProgram:
			err = tool(ctx, root, []string{"CGO_ENABLED=1"}, "go", "build", "-tags", "ofi", "-o", bin.musterOFI, "./cmd/muster")
		}
		if err != nil {
			return bin, err
		}
	}
	return bin, nil
}

func buildPeer(ctx context.Context, root, compiler, out string) error {
	if _, err := exec.LookPath(compiler); err != nil {
		return fmt.Errorf("%s is not installed; on Debian: apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev", compiler)
	}
	// The last -W flag: gcc mistakes MPICH's MPI_STATUSES_IGNORE for an array.
	return tool(ctx, root, nil, compiler, "-O2", "-Wall", "-Wextra", "-Wno-stringop-overflow", "-o", out, "bench/peers/loops/peers.c", "bench/peers/loops/rendezvous.c", "bench/peers/loops/collective.c", "bench/peers/loops/skew.c", "bench/peers/loops/stalls.c", "bench/peers/loops/cpu.c", "bench/peers/loops/onesided.c", "-lpthread", "-lm")
}

func buildBare(ctx context.Context, root, out string) error {
	flags, err := exec.CommandContext(ctx, "pkg-config", "--cflags", "--libs", "libfabric").Output()
	if err != nil {
		return fmt.Errorf("pkg-config has no flags for libfabric: %w", err)
	}
	args := []string{"-O2", "-Wall", "-Wextra", "-o", out, "bench/peers/loops/ofi_bare.c"}
	return tool(ctx, root, nil, "cc", append(args, strings.Fields(string(flags))...)...)
}

func tool(ctx context.Context, dir string, env []string, name string, args ...string) error {
	fmt.Fprintln(os.Stderr, "building with", name)
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?`)

// contenderVersions returns names with versions; a library whose version is unknown is
// named without it.
func contenderVersions(ctx context.Context) map[contender]string {
	of := func(name string, argv ...string) string {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		if err != nil {
			return name
		}
		return strings.TrimSpace(name + " " + versionNumber.FindString(string(out)))
	}
	return map[contender]string{
		openMPI: of("Open MPI", "mpirun.openmpi", "--version"),
		mpich:   of("MPICH", "mpiexec.hydra", "--version"),
		bare:    of("libfabric", "pkg-config", "--modversion", "libfabric"),
	}
}

// versions returns those of the libraries that the group has used.
func (g *group) versions(all map[contender]string) []string {
	var used []string
	for _, c := range g.peers {
		if v := all[c]; v != "" {
			used = append(used, v)
		}
	}
	if g.over != sharedMemory && g.channel == "" && !slices.Contains(g.peers, bare) {
		used = append(used, all[bare])
	}
	return used
}
