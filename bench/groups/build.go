package groups

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
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
	musterC                                          string // in the folder of the C interface, which it loads from there
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

// peerProgram is the program of a contender other than ours.
var peerProgram = [...]program{openMPI: openMPIProgram, mpich: mpichProgram, bare: bareProgram, bareUDP: bareUDPProgram, oneRail: musterProgram, plain: musterProgram, gcm: musterProgram, asMPICH: mpichProgram}

// programs returns those that the contenders of a group need.
func (g *group) programs() []program {
	var list []program
	for _, c := range g.peers {
		if c != before {
			list = append(list, peerProgram[c])
		}
	}
	switch {
	case g.front != "":
		return append(list, musterProgram, cabiProgram)
	case g.over == sharedMemory || g.channel != "" || g.direct:
		return append(list, musterProgram)
	}
	return append(list, musterOFIProgram)
}

// possible leaves out the groups that this machine cannot run. It returns what the
// others need, and the reasons.
func possible(groups []*group, o Options) (left []*group, needed []program, skipped []Skipped) {
	for _, g := range groups {
		if o.Alone {
			g.dropPeers(func(c contender) bool { return tools(peerProgram[c]) != nil })
		}
		programs := g.programs()
		err := g.obstacle(programs)
		if err == nil && o.Root == "" {
			err = needsSources(programs)
		}
		if err != nil {
			skipped = append(skipped, Skipped{g.name, err})
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
	for _, p := range programs {
		if err := tools(p); err != nil {
			return err
		}
	}
	return nil
}

// tools returns an error if the tools that build and start a program are not installed.
func tools(p program) error {
	names, packages := []string(nil), ""
	switch p {
	case openMPIProgram:
		names, packages = []string{"mpicc.openmpi", "mpirun.openmpi"}, "gcc openmpi-bin libopenmpi-dev"
	case mpichProgram:
		names, packages = []string{"mpicc.mpich", "mpiexec.hydra"}, "gcc mpich libmpich-dev"
	case bareUDPProgram:
		names, packages = []string{"cc"}, "gcc"
	case bareProgram, musterOFIProgram:
		names, packages = []string{"cc", "pkg-config"}, "gcc pkg-config libfabric-dev"
	}
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is not installed; on Debian: apt-get install %s", name, packages)
		}
	}
	if slices.Contains(names, "pkg-config") && exec.Command("pkg-config", "--exists", "libfabric").Run() != nil {
		return errors.New("libfabric's headers are not installed; on Debian: apt-get install libfabric-dev")
	}
	return nil
}

// needsSources returns an error if a program is built from the sources of Muster.
func needsSources(programs []program) error {
	for p, what := range map[program]string{musterOFIProgram: "muster with libfabric", cabiProgram: "the C interface"} {
		if slices.Contains(programs, p) {
			return fmt.Errorf("it needs %s, which is built from the sources: start this inside the repository", what)
		}
	}
	return nil
}

// dropPeers leaves out peers. Without any, ours is measured alone, and bounds of its ratio to a
// peer do not apply.
func (g *group) dropPeers(absent func(contender) bool) {
	compared := g.compared()
	g.peers, g.lines = slices.DeleteFunc(slices.Clone(g.peers), absent), slices.Clone(g.lines)
	for i := range g.lines {
		l := &g.lines[i]
		if l.peers != nil {
			l.peers = slices.DeleteFunc(slices.Clone(l.peers), absent)
		}
		if compared && len(g.comparedWith(l)) == 0 {
			l.bound = unbound
		}
	}
}

// SourceRoot returns the root of Muster's sources, if the current folder is in them; otherwise
// "".
func SourceRoot() string {
	dir, err := os.Getwd()
	for up := ""; err == nil && dir != up; dir, up = filepath.Dir(dir), dir {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			if strings.HasPrefix(string(text), "module github.com/muster-mpi/muster\n") {
				return dir
			}
			return ""
		}
	}
	return ""
}

// loops has the programs in C and the script that runs a command on a host.
//
//go:embed loops
var loops embed.FS

// writeLoops writes them into a folder.
func writeLoops(folder string) error {
	return fs.WalkDir(loops, "loops", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := loops.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, d.Name()), text, 0o755)
	})
}

func build(ctx context.Context, o Options, needed []program) (binaries, error) {
	here, err := filepath.Abs(o.Bin) // the ranks may start in another folder
	if err != nil {
		return binaries{}, err
	}
	source := filepath.Join(here, "loops")
	bin := binaries{
		openMPI:   filepath.Join(here, "peers-openmpi"),
		mpich:     filepath.Join(here, "peers-mpich"),
		bare:      filepath.Join(here, "ofi_bare"),
		bareUDP:   filepath.Join(here, "udp_bare"),
		muster:    cmp.Or(o.Muster, filepath.Join(o.Root, "bin", "muster")),
		musterOFI: filepath.Join(o.Root, "bin", "muster-ofi"),
		musterC:   filepath.Join(o.Root, "bin", "muster"),
		onHost:    filepath.Join(source, "onhost.sh"),
	}
	if err := os.MkdirAll(source, 0o755); err != nil {
		return bin, err
	}
	if err := writeLoops(source); err != nil {
		return bin, err
	}
	for _, p := range needed {
		var err error
		switch p {
		case openMPIProgram:
			err = buildPeer(ctx, source, "mpicc.openmpi", bin.openMPI)
		case mpichProgram:
			err = buildPeer(ctx, source, "mpicc.mpich", bin.mpich)
		case bareProgram:
			err = buildBare(ctx, source, bin.bare)
		case bareUDPProgram:
			err = compile(ctx, source, nil, "cc", "-O2", "-Wall", "-Wextra", "-o", bin.bareUDP, "udp_bare.c")
		case musterProgram:
			if o.Muster == "" {
				err = compile(ctx, o.Root, nil, "go", "build", "-o", bin.muster, "./cmd/muster")
			}
		case cabiProgram:
			err = compile(ctx, o.Root, nil, "make", "cabi")
			if err == nil && o.Muster != "" && o.Muster != bin.musterC {
				err = compile(ctx, o.Root, nil, "go", "build", "-o", bin.musterC, "./cmd/muster")
			}
		case musterOFIProgram:
			err = compile(ctx, o.Root, []string{"CGO_ENABLED=1"}, "go", "build", "-tags", "ofi", "-o", bin.musterOFI, "./cmd/muster")
		}
		if err != nil {
			return bin, err
		}
	}
	return bin, nil
}

// buildPeer builds the loops in folder source with the compiler wrapper of a library.
func buildPeer(ctx context.Context, source, compiler, out string) error {
	// The last -W flag: gcc mistakes MPICH's MPI_STATUSES_IGNORE for an array.
	return compile(ctx, source, nil, compiler, "-O2", "-Wall", "-Wextra", "-Wno-stringop-overflow", "-o", out, "peers.c", "rendezvous.c", "collective.c", "skew.c", "stalls.c", "cpu.c", "onesided.c", "-lpthread", "-lm")
}

func buildBare(ctx context.Context, source, out string) error {
	flags, err := exec.CommandContext(ctx, "pkg-config", "--cflags", "--libs", "libfabric").Output()
	if err != nil {
		return fmt.Errorf("pkg-config has no flags for libfabric: %w", err)
	}
	args := []string{"-O2", "-Wall", "-Wextra", "-o", out, "ofi_bare.c"}
	return compile(ctx, source, nil, "cc", append(args, strings.Fields(string(flags))...)...)
}

func compile(ctx context.Context, dir string, env []string, name string, args ...string) error {
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
