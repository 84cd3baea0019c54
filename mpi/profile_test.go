package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/prof"
)

// profiled runs fn on ranks that are goroutines with their own worlds, so that no message of
// another test is counted, and finalizes them.
func profiled(t *testing.T, n int, cfg *mpi.Config, before func(*mpi.World), fn func(c *mpi.Comm) error) {
	t.Helper()
	worlds, err := mpi.Local(n, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, w := range worlds {
		if before != nil {
			before(w)
		}
	}
	for i, w := range worlds {
		wg.Go(func() {
			if err := errors.Join(fn(w.Comm()), w.Finalize()); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// classes returns the message counts of each protocol, as "protocol from-to count bytes".
func classes(p *prof.Counters) (list []string) {
	for _, s := range p.Sizes {
		list = append(list, fmt.Sprintf("%s %d-%d: %d of %d bytes", s.Protocol, s.From, s.To, s.Messages, s.Bytes))
	}
	return list
}

func TestProfileCountsToTheMessage(t *testing.T) {
	const short, long = 7, 3
	program := func(c *mpi.Comm) error {
		buf := make([]byte, 1<<20)
		if c.Rank() == 0 {
			for range short {
				if err := mpi.Send(c, buf[:100], 1, 1); err != nil {
					return err
				}
			}
			if err := mpi.Send(c, buf[:0], 1, 2); err != nil {
				return err
			}
			for range long {
				if err := mpi.Send(c, buf, 1, 3); err != nil {
					return err
				}
			}
			_, err := mpi.Recv(c, buf, 1, 4) // all has been received
			return errors.Join(err, counted(c.World().Profile(), map[prof.Name]uint64{
				prof.MessagesSent: short + 1 + long, prof.BytesSent: short*100 + long<<20,
				prof.MessagesReceived: 1, prof.BytesReceived: 5, prof.PeersTalkedTo: 1, prof.AddressesFetched: 1, prof.Hosts: 1,
			}, "eager 0-0: 1 of 0 bytes", "eager 64-127: 7 of 700 bytes", "rndv_get 1048576-2097151: 3 of 3145728 bytes"))
		}
		// The message that was sent last arrives after the others, which are unexpected.
		if _, err := mpi.Recv(c, buf, 0, 2); err != nil {
			return err
		}
		for i := range short + long {
			if _, err := mpi.Recv(c, buf, 0, 1+i/short*2); err != nil {
				return err
			}
		}
		if err := mpi.Send(c, buf[:5], 0, 4); err != nil {
			return err
		}
		p := c.World().Profile()
		if late := p.Of(prof.MessagesUnexpected); late < short || late > short+long+1 {
			return fmt.Errorf("%d messages came before their receive: %d did for certain", late, short)
		}
		if held := p.Of(prof.MemoryUnexpected); held != short*100 {
			return fmt.Errorf("%d bytes waited for their receive, want %d", held, short*100)
		}
		return counted(p, map[prof.Name]uint64{
			prof.MessagesSent: 1, prof.MessagesReceived: short + 1 + long, prof.BytesReceived: short*100 + long<<20,
		}, "eager 4-7: 1 of 5 bytes")
	}
	profiled(t, 2, &mpi.Config{Advanced: mpi.Advanced{Rendezvous: "get", Speculate: "never"}}, nil, program)
}

// counted reports counters that differ from the expected values.
func counted(p prof.Counters, want map[prof.Name]uint64, sizes ...string) error {
	var errs []error
	for name, n := range want {
		if got := p.Of(name); got != n {
			errs = append(errs, fmt.Errorf("%s is %d, want %d", name, got, n))
		}
	}
	if got := classes(&p); strings.Join(got, "; ") != strings.Join(sizes, "; ") {
		errs = append(errs, fmt.Errorf("lengths are %q, want %q", got, sizes))
	}
	return errors.Join(errs...)
}

// The counters of any number of ranks are combined, without the messages of the profile
// itself.
func TestProfileOfAJob(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "out.json")
			var out bytes.Buffer
			profiled(t, n, &mpi.Config{Profile: file}, func(w *mpi.World) { mpi.ProfileTo(w, &out) }, func(c *mpi.Comm) error {
				next, prev := (c.Rank()+1)%n, (c.Rank()+n-1)%n
				_, err := mpi.Sendrecv(c, make([]byte, 10*(c.Rank()+1)), next, 0, make([]byte, 10*n), prev, 0)
				return err
			})
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := prof.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if want := (prof.Spread{Sum: uint64(n), Min: 1, Max: 1}); s.Ranks != n || s.Values[prof.MessagesSent] != want {
				t.Errorf("%d ranks sent one message each: %d ranks, %+v", n, s.Ranks, s.Values[prof.MessagesSent])
			}
			if want := (prof.Spread{Sum: uint64(10 * n * (n + 1) / 2), Min: 10, Max: uint64(10 * n), MaxAt: n - 1}); s.Values[prof.BytesSent] != want {
				t.Errorf("bytes sent: %+v, want %+v", s.Values[prof.BytesSent], want)
			}
			if first := (prof.Pair{From: n - 1, To: 0, Messages: 1, Bytes: uint64(10 * n)}); len(s.Pairs) != n || s.Pairs[0] != first {
				t.Errorf("the busiest pairs: %+v, the first should be %+v", s.Pairs, first)
			}
			if m := s.Values[prof.MemoryTotal]; m.Min == 0 || m.Max > 64<<20 {
				t.Errorf("communication memory of a rank: %+v", m)
			}
			for _, line := range []string{
				fmt.Sprintf("muster: profile: %d rank", n), fmt.Sprintf("\nmessages       %d; a rank sent 1\n", n),
				fmt.Sprintf("\nbusiest pairs  %d>0 ", n-1), "\nmemory a rank ", "over shm",
			} {
				if !strings.Contains(out.String(), line) {
					t.Errorf("the text lacks %q:\n%s", line, out.String())
				}
			}
		})
	}
}

// A job with a failed rank has no profile, and reports that once.
func TestNoProfileOfADeadJob(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	worlds, err := mpi.Local(2, &mpi.Config{Profile: file})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	mpi.ProfileTo(worlds[0], &out)
	inspect.FailLocal(worlds, 1, "it was tired")
	if err := worlds[0].Finalize(); err == nil || !strings.Contains(err.Error(), "rank 1") {
		t.Errorf("Finalize must name the rank that died: %v", err)
	}
	if got := out.String(); !strings.HasPrefix(got, "muster: no profile: ") || !strings.Contains(got, "it was tired") || strings.Count(got, "\n") != 1 {
		t.Errorf("rank 0 should say in a line that there is no profile, and why: %q", got)
	}
	if b, err := os.ReadFile(file); err != nil || len(b) != 0 {
		t.Errorf("the file should be empty: %d bytes, %v", len(b), err)
	}
}

func TestProfileSetting(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"", ""}, {"text", ""}, {"out.json", ""}, {"txt", "want text"}, {"1", "want text"},
	} {
		cfg, err := mpi.ConfigFromEnv([]string{"MUSTER_PROFILE=" + c.value})
		if c.want == "" && (err != nil || cfg.Profile != c.value) {
			t.Errorf("MUSTER_PROFILE=%s: %v", c.value, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("MUSTER_PROFILE=%s must be refused with advice, got %v", c.value, err)
		}
	}
	nowhere := filepath.Join(t.TempDir(), "none", "out.json")
	if _, err := mpi.Local(1, &mpi.Config{Profile: nowhere}); err == nil || !strings.Contains(err.Error(), "MUSTER_PROFILE") {
		t.Errorf("a file that cannot be written must be refused at the start, got %v", err)
	}
}
