package main

// Several worlds with different settings in the processes of one job. The job's own world
// exists already; each further one uses the rendezvous for processes without a launcher:
// rank 0 listens and the others connect (package pmi, rendezvous.go).

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/mpi"
)

// worldsOf creates a world of the ranks of c for each of the settings. The job's own world is
// not used, so that the worlds differ in nothing else.
func worldsOf(c *mpi.Comm, list []bench.World) ([]*mpi.World, error) {
	var worlds []*mpi.World
	for _, one := range list {
		w, err := furtherWorld(c, one.Settings)
		if err != nil {
			return nil, fmt.Errorf("a world with %s: %w", strings.Join(one.Settings, ", "), err)
		}
		worlds = append(worlds, w)
	}
	return worlds, nil
}

// strictDevice is the default device of registration benchmarks: shared memory needs no
// registration.
const strictDevice = "rc-strict"

// overNetwork reports whether the environment selects a network instead of shared memory.
func overNetwork() bool {
	cfg, err := mpi.ConfigFromEnv(os.Environ())
	return err == nil && cfg.NoSharedMemory
}

func furtherWorld(c *mpi.Comm, settings []string) (*mpi.World, error) {
	var meeting string
	var err error
	if c.Rank() == 0 {
		meeting, err = freePort()
	}
	if err != nil {
		return nil, err
	}
	if meeting, err = mpi.BcastValue(c, meeting, 0); err != nil {
		return nil, err
	}
	key, err := mpi.BcastValue(c, rand.Text(), 0)
	if err != nil {
		return nil, err
	}
	// Libfabric connects at the first message, and only while it is polled. This rank is
	// about to wait outside of c without polling, so all ranks must have the key first.
	if err := c.Barrier(); err != nil {
		return nil, err
	}
	cfg, err := furtherConfig(os.Environ(), settings)
	if err != nil {
		return nil, err
	}
	// Init reads the rank and the size from the environment, so set those of this world.
	restore := replaceEnviron(map[string]string{
		pmi.EnvStaticRank: strconv.Itoa(c.Rank()), pmi.EnvStaticSize: strconv.Itoa(c.Size()),
		pmi.EnvRoot: meeting, pmi.EnvKey: key,
	}, "PMI_", "PMIX_")
	defer restore()
	return mpi.Init(context.Background(), cfg)
}

// furtherConfig returns the configuration of a further world. The job's own world has
// started the CPU profile; a process has only one.
func furtherConfig(environ, settings []string) (*mpi.Config, error) {
	cfg, err := mpi.ConfigFromEnv(slices.Concat(environ, settings))
	if err != nil {
		return nil, err
	}
	cfg.PProf = ""
	return cfg, nil
}

// freePort returns a loopback address with an unused port.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// replaceEnviron sets variables and removes those with the hidden prefixes; restore
// reverts both.
func replaceEnviron(set map[string]string, hidden ...string) (restore func()) {
	before := os.Environ()
	for _, kv := range before {
		for _, prefix := range hidden {
			if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, prefix) {
				os.Unsetenv(name)
			}
		}
	}
	for name, value := range set {
		os.Setenv(name, value)
	}
	return func() {
		for name := range set {
			os.Unsetenv(name)
		}
		for _, kv := range before {
			name, value, _ := strings.Cut(kv, "=")
			os.Setenv(name, value)
		}
	}
}
