package mpitest

// Leak checks: goroutines in the library's code, and files and mappings of shared
// memory. Without /proc only goroutines are checked.

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// module is the prefix of the library's functions in a stack trace.
const module = "github.com/muster-mpi/muster/"

type resources struct{ goroutines, files, mappings int }

func countResources() resources {
	return resources{
		goroutines: len(libraryStacks()),
		files:      len(sharedFiles()), mappings: len(sharedMappings()),
	}
}

// check compares the current state with the earlier one. Goroutines and mappings may
// disappear a little later than the call that ends them, so it retries until the
// timeout.
func (before resources) check(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		now := countResources()
		if now.goroutines <= before.goroutines && now.files <= before.files && now.mappings <= before.mappings {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("left behind after the tests: goroutines %d, files %d, mappings %d (before: %d, %d, %d)\n%s\n%s\n%s",
				now.goroutines, now.files, now.mappings, before.goroutines, before.files, before.mappings,
				strings.Join(libraryStacks(), "\n\n"), strings.Join(sharedFiles(), "\n"), strings.Join(sharedMappings(), "\n"))
		}
	}
}

// libraryStacks returns the stacks of goroutines in the library, except this one and
// those that only wait for a test.
func libraryStacks() []string {
	var out []string
	for i, stack := range strings.Split(allStacks(), "\n\n") {
		if i > 0 && strings.Contains(stack, module) && !strings.Contains(stack, "testing.(*T).Run(") {
			out = append(out, stack)
		}
	}
	return out
}

// isShared reports whether a file is shared memory. It excludes the launcher's board,
// which a process keeps until it exits, so that the launcher can read its exit report.
func isShared(name string) bool {
	if strings.Contains(name, "muster-board") {
		return false
	}
	return strings.Contains(name, "memfd:") || strings.HasPrefix(name, "/dev/shm/")
}

func sharedFiles() []string {
	links, _ := filepath.Glob("/proc/self/fd/*")
	var out []string
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && isShared(to) {
			out = append(out, l+" -> "+to)
		}
	}
	return out
}

func sharedMappings() []string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) >= 6 && isShared(strings.Join(f[5:], " ")) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// allStacks returns the stacks of all goroutines, this one first.
func allStacks() string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return string(buf[:n])
		}
		buf = make([]byte, 2*len(buf))
	}
}
