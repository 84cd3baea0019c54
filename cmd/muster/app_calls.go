package main

// muster app --json: the result with the time in each call and the counters, for studies.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/muster-mpi/muster/apps"
	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// appReport is the JSON form of a run. Package bench/groups reads it.
type appReport struct {
	Name     string  `json:"name"`
	Class    string  `json:"class"`
	Ranks    int     `json:"ranks"`
	Seconds  float64 `json:"seconds"`
	InMPI    float64 `json:"in_mpi"`
	Mops     float64 `json:"mops"`
	Verified bool    `json:"verified"`
	// CPU is the processor time of all ranks in seconds, their start included; 0 if it is
	// unknown.
	CPU float64 `json:"cpu"`
	// Calls has the calls of the whole program by name, initialization and verification
	// included.
	Calls    map[string]callTime       `json:"calls"`
	Counters map[prof.Name]counterSpan `json:"counters"`
	Sizes    []prof.SizeClass          `json:"sizes"` // of the messages of all ranks
}

// callTime is the time in calls of one name.
type callTime struct {
	Kind    string  `json:"kind"`
	Calls   int     `json:"calls"`   // of all ranks
	Seconds float64 `json:"seconds"` // mean of the ranks
}

// counterSpan combines a counter of all ranks.
type counterSpan struct {
	Sum uint64 `json:"sum"`
	Max uint64 `json:"max"`
}

// callTimer adds up the time in calls by name. It is the hook of one rank.
type callTimer struct {
	start time.Time
	mu    sync.Mutex
	index map[string]int
	list  []namedTime
}

type namedTime struct {
	Name, Kind string
	Calls      int
	Nanos      int64
}

// The identifier of a call has the number of its name above these bits, and in them the
// time at which it began: 78 hours of nanoseconds.
const callTimeBits = 48

func newCallTimer() *callTimer { return &callTimer{start: time.Now(), index: map[string]int{}} }

func (t *callTimer) Begin(call mpi.Call) uint64 {
	t.mu.Lock()
	i, seen := t.index[call.Name]
	if !seen {
		i = len(t.list)
		t.index[call.Name], t.list = i, append(t.list, namedTime{Name: call.Name, Kind: call.Kind.String()})
	}
	t.mu.Unlock()
	return uint64(i)<<callTimeBits | uint64(time.Since(t.start))
}

func (t *callTimer) End(id uint64, _ mpi.Status, _ error) {
	began := int64(id & (1<<callTimeBits - 1))
	nanos := int64(time.Since(t.start)) - began
	t.mu.Lock()
	entry := &t.list[id>>callTimeBits]
	entry.Calls, entry.Nanos = entry.Calls+1, entry.Nanos+nanos
	t.mu.Unlock()
}

func (t *callTimer) Complete(_, _ uint64, _ mpi.Status, _ error) {}

// times returns a copy of what was added up.
func (t *callTimer) times() []namedTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]namedTime(nil), t.list...)
}

// rankFigures is what one rank contributes.
type rankFigures struct {
	CPU      time.Duration
	Calls    []namedTime
	Counters map[prof.Name]uint64
	Sizes    []prof.SizeClass
}

// runAppJSON runs the application as one rank; rank 0 prints the report.
func runAppJSON(ctx context.Context, app apps.App, class byte, out io.Writer) error {
	cfg, err := mpi.ConfigFromEnv(os.Environ())
	if err != nil {
		return err
	}
	timer := newCallTimer()
	cfg.Hook = timer
	w, err := mpi.Init(ctx, cfg)
	if err != nil {
		return err
	}
	c := w.Comm()
	result, err := app.Run(c, class)
	if err != nil {
		return fmt.Errorf("app %s: %w", app.Name, err)
	}
	used, _ := cputime.Used()
	profile := c.World().Profile()
	mine := rankFigures{used, timer.times(), profile.Values, profile.Sizes}
	all, err := mpi.GatherValue(c, mine, 0)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		if err := json.NewEncoder(out).Encode(combine(result, class, all)); err != nil {
			return errors.Join(err, w.Finalize())
		}
	}
	if err := w.Finalize(); err != nil {
		return err
	}
	if !result.Verified() {
		return exitStatus(1)
	}
	return nil
}

func combine(result apps.Result, class byte, all []rankFigures) appReport {
	r := appReport{
		Name: result.Name, Class: string(class), Ranks: result.Ranks, Seconds: result.Seconds, InMPI: result.InMPI, Mops: result.Mops(),
		Verified: result.Verified(), Calls: map[string]callTime{}, Counters: map[prof.Name]counterSpan{},
	}
	for _, rank := range all {
		r.CPU += rank.CPU.Seconds()
		for _, t := range rank.Calls {
			c := r.Calls[t.Name]
			c.Kind, c.Calls, c.Seconds = t.Kind, c.Calls+t.Calls, c.Seconds+float64(t.Nanos)/1e9/float64(len(all))
			r.Calls[t.Name] = c
		}
		for _, s := range rank.Sizes {
			i := slices.IndexFunc(r.Sizes, func(one prof.SizeClass) bool { return one.Protocol == s.Protocol && one.From == s.From })
			if i < 0 {
				r.Sizes = append(r.Sizes, s)
				continue
			}
			r.Sizes[i].Messages, r.Sizes[i].Bytes = r.Sizes[i].Messages+s.Messages, r.Sizes[i].Bytes+s.Bytes
		}
		for name, v := range rank.Counters {
			s := r.Counters[name]
			s.Sum, s.Max = s.Sum+v, max(s.Max, v)
			r.Counters[name] = s
		}
	}
	return r
}
