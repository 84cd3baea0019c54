package mpitest

// Recognizing that the ranks of a test will not end. The board shows whether every rank
// waits. It has one row per rank, which does not show the other goroutines of the
// rank, so those are looked up in a stack trace before a test fails.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// await returns when all ranks have ended, or with the reason why they will not.
func (g *gang) await(world *mpi.World, opts *Options) (why string) {
	interval := opts.Timeout / 10
	if opts.StuckAfter > 0 {
		interval = min(interval, opts.StuckAfter/10)
	}
	interval = min(max(interval, time.Millisecond), time.Second)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	began, looked := time.Now(), time.Now()
	var (
		last  uint64
		quiet time.Duration // without progress
	)
	for {
		select {
		case <-g.done:
			return ""
		case now := <-tick.C:
			progress, blocked := inspect.Pulse(world)
			late := now.Sub(looked) > 3*interval // so may be the ranks, on a busy machine
			if late {
				began = began.Add(now.Sub(looked)) // the process was stopped
			}
			looked = now
			if !blocked || progress != last || late {
				last, quiet = progress, 0
			} else {
				quiet += interval
			}
			if opts.StuckAfter > 0 && quiet >= opts.StuckAfter {
				if !anyActive(allStacks()) {
					return fmt.Sprintf("no progress for %v; which rank waits for which:\n  %s", opts.StuckAfter, strings.Join(inspect.Waits(world), "\n  "))
				}
				quiet = 0
			}
			if now.Sub(began) > opts.Timeout {
				return fmt.Sprintf("after %v these ranks have not ended: %v; which rank waits for which:\n  %s\n%s", opts.Timeout, g.runningRanks(),
					strings.Join(inspect.Waits(world), "\n  "), strings.Join(libraryStacks(), "\n\n"))
			}
		}
	}
}

// anyActive reports whether a goroutine of this test may proceed without a message. The
// stacks begin with that of the goroutine that has called Run. Goroutines of other tests
// do not count: they descend from it neither directly nor through one that has ended.
func anyActive(stacks string) bool {
	var list []goroutine
	at := map[int]*goroutine{}
	for text := range strings.SplitSeq(stacks, "\n\n") {
		list = append(list, parseGoroutine(text))
	}
	for i := range list {
		at[list[i].id] = &list[i]
	}
	for _, g := range list[1:] {
		if !g.active {
			continue
		}
		parent := g.parent
		for parent != list[0].id && at[parent] != nil {
			parent = at[parent].parent
		}
		if parent != 0 {
			return true
		}
	}
	return false
}

// goroutine is an entry of a stack trace.
type goroutine struct {
	id, parent int  // parent is 0 for the main goroutine
	active     bool // it runs outside the library, or waits for something that is no goroutine
}

// parseGoroutine parses an entry of a stack trace: a line "goroutine 7 [sleep, 2 minutes]:",
// then for each frame a line with the function, innermost first, and one with the file,
// and at last "created by F in goroutine 3" with its file.
func parseGoroutine(text string) (g goroutine) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	head, _ := strings.CutPrefix(lines[0], "goroutine ")
	id, rest, _ := strings.Cut(head, " ")
	g.id, _ = strconv.Atoi(id)
	_, rest, _ = strings.Cut(rest, "[")
	switch rest[:max(0, strings.IndexAny(rest, ",]"))] {
	case "running", "runnable", "sleep", "syscall", "IO wait":
		g.active = !waitsInLibrary(lines[1:])
	}
	for _, line := range lines[1:] {
		if after, ok := strings.CutPrefix(line, "created by "); ok {
			_, id, _ := strings.Cut(after, " in goroutine ")
			g.parent, _ = strconv.Atoi(id)
		}
	}
	return g
}

// waitsInLibrary reports whether the innermost frame that is not of the standard library
// is one of the library. Code of the user that the library calls is not.
func waitsInLibrary(frames []string) bool {
	for i := 0; i+1 < len(frames); i += 2 {
		function, file := frames[i], frames[i+1]
		switch {
		case strings.HasPrefix(function, "os/signal."): // waits as long as the process runs
			return true
		case inLibrary(function, file):
			return true
		case !ofSystem(function):
			return false
		}
	}
	return false
}

// inLibrary reports whether a frame is in the library and not in a test of it.
func inLibrary(function, file string) bool {
	rest, ok := strings.CutPrefix(function, module)
	if !ok || strings.Contains(file, "_test.go:") {
		return false
	}
	for _, folder := range []string{"mpi.", "mpi/", "internal/", "rdma/"} {
		if strings.HasPrefix(rest, folder) {
			return true
		}
	}
	return false
}

// ofSystem reports whether a function may be of the standard library or of golang.org/x,
// which code of the library and of its users call alike.
func ofSystem(function string) bool {
	first, _, _ := strings.Cut(function, "/")
	if first == function { // such as time.Sleep
		return true
	}
	return !strings.Contains(first, ".") || strings.HasPrefix(function, "golang.org/x/")
}
