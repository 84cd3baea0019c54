package lab

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// spinningThreads counts the threads of this process that run in the scheduling class for idle
// time.
func spinningThreads(t *testing.T) (n int) {
	stats, err := filepath.Glob("/proc/self/task/*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		// Field 41 is the policy; rest begins with field 3. See proc_pid_stat(5).
		if f := strings.Fields(rest); len(f) > 38 && f[0] == "R" && f[38] == "5" {
			n++
		}
	}
	return n
}

func TestSpinIdleHoldsEachCoreUntilItsInputEnds(t *testing.T) {
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- SpinIdle(r) }()
	for deadline := time.Now().Add(10 * time.Second); spinningThreads(t) < cores.Count(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d threads spin on %d cores", spinningThreads(t), cores.Count())
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); spinningThreads(t) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d threads spin on after the end of the input", spinningThreads(t))
		}
	}
}
