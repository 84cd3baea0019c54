package mpi_test

// How much of a transfer was hidden behind computation.

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
	"github.com/muster-mpi/muster/prof"
)

// exchanges receives long messages in rank 0, which come after it has asked for them: some
// while it computes, and some while it waits.
type exchanges struct {
	size, rounds int
	seen         chan struct{} // not a call of the library
}

// away is the time after which rank 1 answers.
const away = 5 * time.Millisecond

func (x *exchanges) ask(c *mpi.Comm) error { return mpi.Send(c, []byte{1}, 1, 6) }

// computes computes until all of the message is there, and then for as long again: a
// message is complete some time after its last byte can be seen.
func (x *exchanges) computes(c *mpi.Comm) error {
	in := make([]byte, x.size)
	r := mpi.Irecv(c, in, 1, 5)
	if err := x.ask(c); err != nil {
		return err
	}
	arrived := sawAll(in, 0)
	time.Sleep(away)
	x.seen <- struct{}{}
	_, err := r.Wait()
	if !arrived {
		err = errors.Join(err, errors.New("the data did not come while the rank computed"))
	}
	return err
}

// waits waits at once.
func (x *exchanges) waits(c *mpi.Comm) error {
	r := mpi.Irecv(c, make([]byte, x.size), 1, 5)
	if err := x.ask(c); err != nil {
		return err
	}
	_, err := r.Wait()
	x.seen <- struct{}{}
	return err
}

// answers sends a message, and makes no call until the other rank has seen all of it.
func (x *exchanges) answers(c *mpi.Comm) error {
	if _, err := mpi.Recv(c, make([]byte, 1), 0, 6); err != nil {
		return err
	}
	time.Sleep(away) // the time that is measured
	r := mpi.Isend(c, []byte(strings.Repeat("x", x.size)), 0, 5)
	<-x.seen
	_, err := r.Wait()
	return err
}

func (x *exchanges) run(c *mpi.Comm) error {
	if err := c.Barrier(); err != nil {
		return err
	}
	for range x.rounds {
		steps := []func(*mpi.Comm) error{x.computes, x.waits}
		if c.Rank() == 1 {
			steps = []func(*mpi.Comm) error{x.answers, x.answers}
		}
		for _, step := range steps {
			if err := step(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func newExchanges(t *testing.T) *exchanges {
	if mpitest.Launched() {
		t.Skip("its ranks are goroutines: a process cannot see what another has seen")
	}
	unchecked(t) // check mode copies a message when it is waited for
	return &exchanges{size: 1 << 20, rounds: 8, seen: make(chan struct{}, 1)}
}

func TestProfileShowsWhatIsHidden(t *testing.T) {
	x := newExchanges(t)
	file := filepath.Join(t.TempDir(), "p.json")
	profiled(t, 2, &mpi.Config{Profile: file, Progress: "async"}, nil, func(c *mpi.Comm) error {
		if err := x.run(c); err != nil {
			return err
		}
		// Short messages are not measured, collectives are.
		short := []mpi.Request{mpi.Irecv(c, make([]byte, x.size), 1-c.Rank(), 7), mpi.Isend(c, make([]byte, 100), 1-c.Rank(), 7)}
		if err := mpi.WaitAll(short...); err != nil {
			return err
		}
		if c.Rank() == 1 {
			time.Sleep(away)
		}
		_, err := mpi.Iallreduce(c, []int{1}, []int{0}, mpi.Sum).Wait()
		return err
	})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := prof.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]prof.Overlap{}
	for _, site := range s.Sites {
		if site.Overlap != (prof.Overlap{}) {
			found[site.Routine+site.Function[strings.LastIndexByte(site.Function, '.'):]] = site.Overlap
		}
	}
	rounds := uint64(x.rounds)
	o := found["Irecv.computes"]
	if least, most := o.Shares(); o.Operations != rounds || o.Early < rounds/2 || o.Time < rounds*uint64(away)/2 || least < 0.6 {
		t.Errorf("rank 0 computed until %d messages were there; %.3f to %.3f of the transfers are hidden: %+v", rounds, least, most, o)
	}
	o = found["Irecv.waits"]
	if least, most := o.Shares(); o.Operations != rounds || o.Early > rounds/2 || o.Waited < rounds*uint64(away)/2 || most > 0.4 {
		t.Errorf("rank 0 waited for %d messages at once; %.3f to %.3f of the transfers are hidden: %+v", rounds, least, most, o)
	}
	for name, o := range found {
		switch name {
		case "Irecv.computes", "Irecv.waits", "Isend.answers":
		case "Iallreduce.func1":
			if o.Operations == 0 || o.Operations > 2 {
				t.Errorf("two ranks started a collective each: %+v", o)
			}
		default:
			t.Errorf("%s has a short message or none, and is measured: %+v", name, o)
		}
	}
	if _, is := found["Iallreduce.func1"]; !is {
		t.Error("the collective is not measured")
	}
	if !strings.Contains(s.Text(), "hidden") {
		t.Errorf("the text has no column for it:\n%s", s.Text())
	}
}
