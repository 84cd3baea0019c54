package mpi

// The profile of arrivals (T2 6.3.1), from the records of arrivals.go:
//
//	join       clocks are compared along a binomial tree; ranks on one host have one
//	           clock and need not
//	Finalize   clocks are compared again, and messages of some lengths are timed; the
//	           calls go up the tree, the mean arrivals at them come down, and the
//	           deviation of each rank goes up again; rank 0 writes the result
//
// The messages use the context of the world's collectives, with their own tag
// (profile.go).

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/prof"
)

// profileArrivals is the Config.Profile of arrivals, alone or before the name of a file.
const profileArrivals = "arrivals"

// arrivalsFile returns the file of a Config.Profile of arrivals, or "" if none.
func arrivalsFile(s string) (file string, is bool) {
	if s == profileArrivals {
		return "", true
	}
	return strings.CutPrefix(s, profileArrivals+":")
}

// openArrivals is openProfile for arrivals.
func openArrivals(cfg *Config, rank int, p *profile) error {
	file, _ := arrivalsFile(cfg.Profile)
	if p.recorder = newRecorder(); rank != 0 {
		return nil
	}
	if !strings.HasSuffix(file, ".json") {
		p.text = os.Stderr
	}
	if file == "" {
		return nil
	}
	var err error
	if p.file, err = filepath.Abs(file); err == nil {
		err = os.WriteFile(p.file, nil, 0o666)
	}
	return err
}

// reportArrivals merges the records of all ranks and writes them.
func (w *World) reportArrivals() error {
	all, err := w.gatherArrivals()
	if err != nil {
		w.noProfile(err)
		return nil
	}
	if w.comm.rank != 0 {
		return nil
	}
	if w.watch.profile.text != nil {
		fmt.Fprint(w.watch.profile.text, "muster: ", all.Text())
	}
	if w.watch.profile.file == "" {
		return nil
	}
	if strings.HasSuffix(w.watch.profile.file, ".svg") {
		var picture strings.Builder
		if err = all.WriteSVG(&picture); err == nil {
			err = os.WriteFile(w.watch.profile.file, []byte(picture.String()), 0o666)
		}
	} else {
		err = os.WriteFile(w.watch.profile.file, all.Encode(), 0o666)
	}
	if err != nil {
		return w.comm.refuse(ErrOther, "Finalize", "write the profile: %w", err)
	}
	return nil
}

func (w *World) gatherArrivals() (*prof.Arrivals, error) {
	r, c := w.watch.recorder, w.comm
	if err := w.compareClocks(&w.watch.profile.clock.EndAt, &w.watch.profile.clock.EndAdd); err != nil {
		return nil, err
	}
	counters := w.counters(w.e.Counters())
	records, lost := r.close(w.watch.profile.clock)
	mine := prof.GatherArrivals(c.rank, records)
	mine.Lost, mine.ClockError = lost, w.watch.profile.clockError
	mine.Hosts, mine.Devices = int(counters.Of(prof.Hosts)), counters.Devices
	messages, err := w.timeMessages()
	if err != nil {
		return nil, err
	}
	all, err := combineArrivals(w, mine)
	if err != nil {
		return nil, err
	}
	means := &prof.Means{}
	if c.rank == 0 {
		means = all.Means()
	}
	if means, err = w.spreadMeans(means); err != nil {
		return nil, err
	}
	deviations, err := combineArrivals(w, means.Deviations(c.rank, records))
	if err != nil || c.rank != 0 {
		return nil, err
	}
	all.Merge(&prof.Arrivals{Calls: deviations.Calls})
	all.Messages = messages
	return all, nil
}

func combineArrivals(w *World, a *prof.Arrivals) (*prof.Arrivals, error) {
	return combine(w, a, (*prof.Arrivals).Encode, prof.DecodeArrivals, (*prof.Arrivals).Merge)
}

// spreadMeans broadcasts the mean arrivals of rank 0.
func (w *World) spreadMeans(m *prof.Means) (*prof.Means, error) {
	var encoded []byte
	c := w.comm
	if c.rank == 0 {
		encoded = m.Encode()
	} else {
		var err error
		if encoded, err = w.recvPart(parent(c.rank)); err != nil {
			return nil, err
		}
		if m, err = prof.DecodeMeans(encoded); err != nil {
			return nil, c.refuse(ErrIntern, "Finalize", "from rank %d: %w", parent(c.rank), err)
		}
	}
	for _, child := range children(c.rank, c.size) {
		if err := w.sendPart(encoded, child); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// parent and children are those of the binomial tree of combine.
func parent(rank int) int { return rank & (rank - 1) }

func children(rank, size int) (all []int) {
	for bit := 1; rank+bit < size && rank&bit == 0; bit <<= 1 {
		all = append(all, rank+bit)
	}
	slices.Reverse(all) // the largest subtree first
	return all
}

// clockPings is how often the time is requested: the fastest reply counts.
const clockPings = 24

// compareClocks measures the offset from the clock of this rank to that of rank 0: first
// with the parent, then with the children.
func (w *World) compareClocks(at, add *int64) error {
	c, clock := w.comm, w.watch.clock
	before := w.watch.profile.clockError
	w.watch.profile.clockError = 0 // of this comparison, which children add theirs to
	defer func() { w.watch.profile.clockError = max(w.watch.profile.clockError, before) }()
	if *at = clock.Now(); c.rank != 0 {
		var err error
		if *add, err = w.askParent(parent(c.rank)); err != nil {
			return err
		}
	}
	for _, child := range children(c.rank, c.size) {
		if err := w.answerChild(child, *add); err != nil {
			return err
		}
	}
	return nil
}

// askParent learns which clock the parent has and, if it is another, requests the time of
// rank 0 from it repeatedly.
func (w *World) askParent(from int) (add int64, err error) {
	clock := w.watch.clock
	hello, err := w.recvPart(from)
	if err != nil {
		return 0, err
	}
	if len(hello) < 16 {
		return 0, w.comm.refuse(ErrIntern, "Init", "rank %d begins to compare clocks with %d bytes: does it run another version?", from, len(hello))
	}
	w.watch.profile.clockError = max(w.watch.profile.clockError, int64(binary.LittleEndian.Uint64(hello[8:])))
	add = int64(binary.LittleEndian.Uint64(hello))
	if domain := string(hello[16:]); domain != "" && domain == clock.Domain() {
		return add, w.sendPart([]byte{0}, from)
	}
	if err := w.sendPart([]byte{1}, from); err != nil {
		return 0, err
	}
	var pings [clockPings]prof.Ping
	var question, answer [8]byte
	for i := range pings {
		p := &pings[i]
		p.Asked = clock.Now()
		if err := w.sendBytes(question[:], from); err != nil {
			return 0, err
		}
		if err := w.recvBytes(answer[:], from); err != nil {
			return 0, err
		}
		p.Answered = clock.Now()
		p.Answer = int64(binary.LittleEndian.Uint64(answer[:]))
	}
	add, wrong := prof.Estimate(pings[:])
	w.watch.profile.clockError += wrong
	return add, nil
}

func (w *World) answerChild(child int, add int64) error {
	clock := w.watch.clock
	hello := binary.LittleEndian.AppendUint64(nil, uint64(add))
	hello = binary.LittleEndian.AppendUint64(hello, uint64(w.watch.profile.clockError))
	if err := w.sendPart(append(hello, clock.Domain()...), child); err != nil {
		return err
	}
	other, err := w.recvPart(child)
	if err != nil || len(other) == 1 && other[0] == 0 {
		return err
	}
	var question, answer [8]byte
	for range clockPings {
		if err := w.recvBytes(question[:], child); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(answer[:], uint64(clock.Now()+add))
		if err := w.sendBytes(answer[:], child); err != nil {
			return err
		}
	}
	return nil
}

// The unit of imbalance is the time of a message, between rank 0 and the last rank, which is
// on another host if there is one.
var messageLengths = []int{8, 1 << 10, 8 << 10, 64 << 10, 512 << 10}

const messageTrips = 12

// timeMessages times messages at rank 0.
func (w *World) timeMessages() (times []prof.MessageTime, err error) {
	c, clock, last := w.comm, w.watch.clock, w.comm.size-1
	if last == 0 || c.rank != 0 && c.rank != last {
		return nil, nil
	}
	b := make([]byte, slices.Max(messageLengths))
	for _, n := range messageLengths {
		var trips []int64
		for range messageTrips {
			start := clock.Now()
			if c.rank == 0 {
				if err = w.sendBytes(b[:n], last); err == nil {
					err = w.recvBytes(b[:n], last)
				}
			} else if err = w.recvBytes(b[:n], 0); err == nil {
				err = w.sendBytes(b[:n], 0)
			}
			if err != nil {
				return nil, err
			}
			trips = append(trips, clock.Now()-start)
		}
		slices.Sort(trips)
		times = append(times, prof.MessageTime{Bytes: n, Nanos: float64(trips[len(trips)/2]) / 2})
	}
	return times, nil
}
