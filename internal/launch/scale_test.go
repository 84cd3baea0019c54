//go:build !windows

package launch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// simAgent is an agent without processes: it sends the reports of its ranks and counts
// what it receives.
type simAgent struct {
	host     int
	ranks    spans
	up       *link
	blocks   chan spans
	released chan struct{}
	deaths   chan spans
}

func (a *simAgent) send(r *report) { a.up.send(frame{frameReport, uint32(a.host), r.body()}) }

func (a *simAgent) listen(t *testing.T) {
	for {
		f, err := a.up.receive()
		if err != nil {
			return
		}
		switch f.kind {
		case frameBlock:
			ranks, err := readBlock(f.body)
			if err != nil {
				t.Error(err)
			}
			a.blocks <- ranks
		case frameRelease:
			a.released <- struct{}{}
		case frameDeath:
			ranks, _, _, err := readDeath(f.body)
			if err != nil {
				t.Error(err)
			}
			a.deaths <- ranks
		case frameFetch:
			number, key, _ := readGet(f.body)
			a.up.send(frame{frameFetched, f.host, answerBody(number, "value of "+key, true)})
		case frameJob:
			if len(f.body) > 10000 {
				t.Errorf("host %d got a job of %d bytes: it must not list the ranks of other hosts", a.host, len(f.body))
			}
		}
	}
}

// simJob is the root of a job whose agents are simulated and connected to it by pipes.
type simJob struct {
	job     *job
	backend *remoteBackend
	agents  []*simAgent
	ended   chan struct{}
}

func startSim(t *testing.T, hosts, perHost int) *simJob {
	t.Helper()
	cfg := Config{Ranks: hosts * perHost, Prog: "/bin/true", Output: Output{Stdout: io.Discard, Stderr: io.Discard}}
	for i := range hosts {
		cfg.Hosts = append(cfg.Hosts, Host{Name: fmt.Sprintf("host%04d", i)})
	}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	j := newJob(&cfg)
	b, err := newRemoteBackend(j)
	if err != nil {
		t.Fatal(err)
	}
	j.backend = b
	s := &simJob{job: j, backend: b, ended: make(chan struct{})}
	for i := range hosts {
		fromRoot, toAgent := io.Pipe()
		fromAgent, toRoot := io.Pipe()
		a := &simAgent{host: i, ranks: spansOf(cfg.layout.ranks[i]...), blocks: make(chan spans, 1), released: make(chan struct{}, 1), deaths: make(chan spans, 100)}
		a.up = newLink(bufio.NewReader(fromRoot), toRoot, greeting(agentLine, b.key))
		br := &branch{owner: b, key: b.key, assign: assignment{Host: hostRef{i, cfg.Hosts[i].Name}, Ping: time.Hour}, quit: make(chan struct{}), ended: make(chan struct{})}
		br.link = newLink(bufio.NewReaderSize(fromAgent, branchBuffer), toAgent, "")
		b.branches = append(b.branches, br)
		s.agents = append(s.agents, a)
		go a.listen(t)
		go func() {
			defer close(br.ended)
			br.read(br.link)
		}()
	}
	go func() {
		defer close(s.ended)
		j.loop(context.Background())
	}()
	t.Cleanup(func() {
		for i, a := range s.agents {
			a.up.close()
			b.branches[i].close()
			<-b.branches[i].ended
		}
		b.out.close()
		<-b.printed
		b.forker.close()
	})
	return s
}

// each runs a function for all agents.
func (s *simJob) each(fn func(a *simAgent)) {
	for _, a := range s.agents {
		fn(a)
	}
}

// begin brings all ranks to the state in which they enter the first fence.
func (s *simJob) begin(t *testing.T) {
	s.each(func(a *simAgent) { a.send(&report{ready: spansOf(a.host)}) })
	s.each(func(a *simAgent) {
		if got := <-a.blocks; fmt.Sprint(got) != fmt.Sprint(a.ranks) {
			t.Errorf("host %d got the ranks %v; want %v", a.host, got, a.ranks)
		}
		r := &report{joined: a.ranks}
		for rank := range a.ranks.all() {
			r.addStarted(rank, 10000+rank)
		}
		a.send(r)
	})
}

func (s *simJob) fence(nth int) {
	s.each(func(a *simAgent) { a.send(&report{fence: nth, fenced: a.ranks}) })
	s.each(func(a *simAgent) { <-a.released })
}

// finish ends all ranks but those that have failed.
func (s *simJob) finish() {
	s.each(func(a *simAgent) {
		a.send(&report{finalized: a.ranks, left: a.ranks, drained: spansOf(a.host)})
	})
	<-s.ended
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A fence of 65,536 ranks on 1,024 hosts costs the root at most 0.1 s of CPU, although all
// agents are connected to it without a tree and run in this process, and the root of such
// a job, with its agents, takes at most 64 MB.
func TestFenceOf65536Ranks(t *testing.T) {
	hosts, perHost, limit := 1024, 64, 100*time.Millisecond
	if slow > 1 {
		hosts, limit = 128, time.Second
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := startSim(t, hosts, perHost)
	s.begin(t)
	const fences = 5
	began := cpuTime()
	for nth := range fences {
		s.fence(nth)
	}
	each := (cpuTime() - began) / fences
	runtime.GC()
	runtime.ReadMemStats(&after)
	memory := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	t.Logf("%d ranks: %v of CPU for a fence, %.1f MB", hosts*perHost, each, float64(memory)/1e6)
	if each > limit {
		t.Errorf("a fence took %v of CPU; want at most %v", each, limit)
	}
	if memory > 64<<20 {
		t.Errorf("the root takes %d bytes; want at most %d", memory, 64<<20)
	}
	s.finish()
	if s.job.outcome.cause != nil || s.job.server.FencesPassed() != fences {
		t.Errorf("the job ended with %v after %d fences", s.job.outcome.cause, s.job.server.FencesPassed())
	}
}

// A failure is announced to each host once, and what fails because of it is not announced.
// A lost host is one announcement for all its ranks.
func TestDeathIsAnnouncedOnce(t *testing.T) {
	const hosts, perHost = 32, 16
	for name, fail := range map[string]func(s *simJob){
		"rank": func(s *simJob) {
			s.agents[3].up.send(frame{frameExited, 3, exitedBody(3*perHost+1, ending{signal: syscall.SIGSEGV})})
		},
		"host": func(s *simJob) { s.agents[3].up.send(frame{frameLost, 3, []byte("no answer")}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := startSim(t, hosts, perHost)
			s.begin(t)
			s.fence(0)
			fail(s)
			want := spansOf(3*perHost + 1)
			if name == "host" {
				want = s.agents[3].ranks
			}
			s.each(func(a *simAgent) {
				if got := <-a.deaths; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("host %d was told that ranks %v have failed; want %v", a.host, got, want)
				}
				for rank := range a.ranks.all() {
					a.up.send(frame{frameExited, uint32(a.host), exitedBody(rank, ending{code: 1})})
				}
			})
			<-s.ended
			s.each(func(a *simAgent) {
				if n := len(a.deaths); n > 0 {
					t.Errorf("host %d was told of %d further failures", a.host, n)
				}
			})
		})
	}
}

// The root of a large job does not store the values of ranks; it fetches them.
func TestValuesAreFetched(t *testing.T) {
	s := startSim(t, 4, 2)
	s.begin(t)
	for rank := range 8 {
		var got sync.WaitGroup
		got.Add(1)
		s.job.server.Lookup(fmt.Sprintf("card-%d", rank), func(value string, ok bool) {
			if want := fmt.Sprintf("value of card-%d", rank); !ok || value != want {
				t.Errorf("the value of rank %d: %q, %v", rank, value, ok)
			}
			got.Done()
		})
		got.Wait()
	}
	s.job.server.Lookup("P0-card", func(_ string, ok bool) {
		if ok {
			t.Error("a key that names no rank must not be fetched")
		}
	})
	s.finish()
}
