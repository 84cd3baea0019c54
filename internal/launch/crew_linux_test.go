package launch

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/muster-mpi/muster/internal/pmi"
)

// crewOf starts n processes that do nothing and returns the crew. The second function ends
// them.
func crewOf(t *testing.T, n int) (*crew, func()) {
	t.Helper()
	var exits sync.WaitGroup
	exits.Add(n)
	c, err := newCrew(crewSpec{
		ranks: oneHost(n).ranks[0], size: n, programs: []Program{{Prog: "/bin/sleep", Args: []string{"600"}, Ranks: n}},
		bind: BindNone, server: pmi.NewServer(pmi.ServerConfig{Size: n}),
		lines: func(int, bool) func([]byte) { return func([]byte) {} },
		post: func(e event) {
			if e.exited {
				exits.Done()
			}
		},
		notice: func(text string) { t.Log(text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	return c, func() {
		c.signalAll(syscall.SIGKILL)
		exits.Wait()
		if n := c.living(); n != 0 {
			t.Errorf("%d ranks live after their exits were reported", n)
		}
		c.drain()
		c.close()
	}
}

// liveMemory returns the size of the heap without garbage. Files need more than one
// collection, because they have cleanups. Stacks are those of goroutines, which the test
// counts.
func liveMemory() int64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func threads(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}

// mostPerStart is the limit of what the start of a rank allocates: 2 KB, and the environment
// once, as the kernel needs it, with a pointer to each variable.
func mostPerStart() int {
	n := 2 << 10
	for _, kv := range os.Environ() {
		n += len(kv) + 1 + 8
	}
	return n + n/8 // the sizes of the allocator
}

func totalAllocated() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.TotalAlloc)
}

// A rank of the launcher's machine takes no goroutine, no thread and at most 1 KB.
func TestMemoryOfARank(t *testing.T) {
	const few, more = 16, 256
	c, end := crewOf(t, few)
	if _, portable := c.control.(*portablePoller); portable {
		t.Skip("this kernel has no epoll that the runtime can poll")
	}
	if c.members[0].proc.(*pidProcess).fd < 0 {
		t.Skip("this kernel has no pidfds")
	}
	goroutines, before, tasks := runtime.NumGoroutine(), liveMemory(), threads(t)
	end()
	growth := debug.SetGCPercent(100)
	allocated := totalAllocated()
	_, end = crewOf(t, more)
	// Garbage of the start is memory of the launcher, too.
	perStart := (totalAllocated() - allocated) / more
	t.Logf("%d bytes allocated for the start of each rank, of at most %d", perStart, mostPerStart())
	if most := mostPerStart(); perStart > most {
		t.Errorf("the start of a rank allocates %d bytes; want at most %d", perStart, most)
	}
	defer func() {
		end()
		if n := debug.SetGCPercent(growth); n != 100 {
			t.Errorf("after the job the garbage collector runs at a growth of %d %%; want 100, as before it", n)
		}
	}()
	perRank := (liveMemory() - before) / (more - few)
	t.Logf("%d bytes for each rank", perRank)
	if perRank > 1024 {
		t.Errorf("a rank takes %d bytes of the launcher; want at most 1024", perRank)
	}
	if n := runtime.NumGoroutine(); n > goroutines+8 {
		t.Errorf("%d goroutines for %d ranks, %d for %d", n, more, goroutines, few)
	}
	if n := threads(t); n > tasks+16 {
		t.Errorf("%d threads for %d ranks, %d for %d", n, more, tasks, few)
	}
}

// Both pollers forward all lines of ranks and report their exits, also of a rank whose
// child process keeps the pipes open.
func TestPollers(t *testing.T) {
	for name, pollers := range map[string]func() poller{
		"epoll": newPoller, "portable": func() poller { return new(portablePoller) },
	} {
		t.Run(name, func(t *testing.T) {
			const n = 8
			var mu sync.Mutex
			var lines []string
			ends := make(chan event, n)
			c, err := newCrew(crewSpec{
				ranks: oneHost(n).ranks[0], size: n,
				programs: []Program{{Prog: "/bin/sh", Args: []string{"-c", "echo out $PMI_RANK; echo err >&2; printf last; sleep 60 & exit $PMI_RANK"}, Ranks: n}},
				bind:     BindNone, server: pmi.NewServer(pmi.ServerConfig{Size: n}),
				lines: func(rank int, isStderr bool) func([]byte) {
					return func(text []byte) {
						mu.Lock()
						defer mu.Unlock()
						lines = append(lines, fmt.Sprintf("%d %v %s", rank, isStderr, text))
					}
				},
				post: func(e event) {
					if e.exited {
						ends <- e
					}
				},
				notice: func(text string) { t.Error(text) },
			})
			if err != nil {
				t.Fatal(err)
			}
			c.control.close()
			c.output.close()
			c.control, c.output = pollers(), pollers()
			if err := c.start(); err != nil {
				t.Fatal(err)
			}
			for range n {
				if e := <-ends; e.end.code != e.rank || e.end.err != nil {
					t.Errorf("rank %d ended with %v", e.rank, e.end)
				}
			}
			c.drain()
			var want []string
			for rank := range n {
				want = append(want, fmt.Sprintf("%d false out %d\n", rank, rank), fmt.Sprintf("%d true err\n", rank), fmt.Sprintf("%d false last", rank))
			}
			slices.Sort(want)
			slices.Sort(lines)
			if !slices.Equal(lines, want) {
				t.Errorf("the lines are %q; want %q", lines, want)
			}
			for i := range c.members {
				c.members[i].proc.signal(syscall.SIGKILL) // the children
			}
			c.close()
		})
	}
}
