package mpi

// The profile of a job (P3 section 3). Each rank always counts, in its own memory. If
// Config.Profile is set, the rank also observes its calls (profile_calls.go), and the job
// combines the counters when it ends:
//
//	join       rank 0 creates the file, so that a bad name is reported before the work
//	Finalize   each rank reads its counters, before the messages that combine them;
//	           a binomial tree carries the sum to rank 0, which writes it
//
// If a rank has failed there is no profile, and rank 0 reports that if it can.

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/prof"
)

// The Config.Profile that prints the profile on one screen, and in full.
const (
	profileText = "text"
	profileFull = "full"
)

// Profile returns the counters of the calling rank since it joined the job. They include
// the messages that the library sends itself, such as those of collectives. To measure a
// part of a program, call Profile before and after it. With Config.Profile they include those
// of the profile of calls.
func (w *World) Profile() prof.Counters {
	p := w.counters(w.e.Counters())
	if w.watch.calls != nil {
		w.watch.calls.addTo(&p)
	}
	return p
}

// counters adds the counters of this package to those of the engine.
func (w *World) counters(p prof.Counters) prof.Counters {
	p.Add(prof.MemoryBuffered, uint64(w.buffered.Load()))
	p.Add(prof.MemorySegments, w.teams.share())
	return p
}

func checkProfile(s string) error {
	file, arrivals := arrivalsFile(s)
	switch {
	case s == profileText, s == profileFull, s == profileArrivals, strings.HasSuffix(s, ".json") && (!arrivals || file != ".json"):
		return nil
	case arrivals && strings.HasSuffix(file, ".svg"):
		return nil
	}
	return fmt.Errorf("want %s, %s, %s, %[3]s:FILE.svg, %[3]s:FILE.json, or the name of a file that ends in .json", profileText, profileFull, profileArrivals)
}

// profile is the output of the profile of a job. Ranks other than 0 have none.
type profile struct {
	on   bool
	text io.Writer // nil: none
	full bool      // the text is not for one screen
	file string    // "": none
	// Of a profile of arrivals: the records, the offset of the clock from rank 0's, and
	// the error bound of that.
	recorder   *recorder
	clock      prof.Offset
	clockError int64
}

// openProfile prepares the output of a profile.
func openProfile(cfg *Config, rank int) (p profile, err error) {
	p.on = cfg.Profile != ""
	_, arrivals := arrivalsFile(cfg.Profile)
	switch {
	case arrivals:
		if err := openArrivals(cfg, rank, &p); err != nil {
			return p, fmt.Errorf("mpi: Config.Profile (MUSTER_PROFILE) is %q: %w; name a file that can be written", cfg.Profile, err)
		}
	case !p.on || rank != 0:
	case cfg.Profile == profileText, cfg.Profile == profileFull:
		p.text, p.full = os.Stderr, cfg.Profile == profileFull
	default:
		// The program may change its working directory.
		if p.file, err = filepath.Abs(cfg.Profile); err == nil {
			err = os.WriteFile(p.file, nil, 0o666)
		}
		if err != nil {
			return p, fmt.Errorf("mpi: Config.Profile (MUSTER_PROFILE) is %q: %w; name a file that can be written", cfg.Profile, err)
		}
	}
	return p, nil
}

// report combines the counters of all ranks and writes them. It returns the error of
// writing; the next call finds out that a rank has failed.
func (w *World) report() error {
	if !w.watch.profile.on {
		return nil
	}
	if w.watch.recorder != nil {
		return w.reportArrivals()
	}
	counters := w.Profile()
	counters.Add(prof.CollectivesShared, w.teams.calls()+w.gates) // no call is under way
	sum, err := combine(w, prof.Summarize(&counters), (*prof.Summary).Pack, prof.Unpack, (*prof.Summary).Merge)
	if err != nil {
		w.noProfile(err)
		return nil
	}
	if w.comm.rank == 0 {
		sum.Resolve()
	}
	if w.watch.profile.text != nil {
		text := sum.Screen()
		if w.watch.profile.full {
			text = sum.Text()
		}
		fmt.Fprint(w.watch.profile.text, "muster: ", text)
	}
	if w.watch.profile.file != "" {
		if err := os.WriteFile(w.watch.profile.file, sum.EncodeFile(), 0o666); err != nil {
			return w.comm.refuse(ErrOther, "Finalize", "write the profile: %w", err)
		}
	}
	return nil
}

// noProfile reports that there will be no profile.
func (w *World) noProfile(why error) {
	if w.watch.profile.text != nil {
		fmt.Fprintf(w.watch.profile.text, "muster: no profile: %v\n", why)
		w.watch.profile.text = nil // once
	}
}

// combine merges the data of all ranks along a binomial tree. At rank 0 the result is that
// of the job.
func combine[S any](w *World, s S, encode func(S) []byte, decode func([]byte) (S, error), merge func(into, from S)) (S, error) {
	c := w.comm
	for bit := 1; bit < c.size; bit <<= 1 {
		if c.rank&bit != 0 {
			return s, w.sendPart(encode(s), c.rank-bit)
		}
		from := c.rank + bit
		if from >= c.size {
			continue
		}
		b, err := w.recvPart(from)
		if err != nil {
			return s, err
		}
		other, err := decode(b)
		if err != nil {
			return s, c.refuse(ErrIntern, "Finalize", "from rank %d: %w", from, err)
		}
		merge(s, other)
	}
	return s, nil
}

// sendPart sends a part of a profile, its length first.
func (w *World) sendPart(b []byte, to int) error {
	if err := w.sendBytes(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), to); err != nil {
		return err
	}
	return w.sendBytes(b, to)
}

func (w *World) recvPart(from int) ([]byte, error) {
	var length [8]byte
	if err := w.recvBytes(length[:], from); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxPart {
		return nil, w.comm.refuse(ErrIntern, "Finalize", "rank %d has a profile of %d bytes, more than there can be: does it run another version?", from, n)
	}
	b := make([]byte, n)
	return b, w.recvBytes(b, from)
}

// sendBytes and recvBytes transfer a part of the profile whose length both sides know.
func (w *World) sendBytes(b []byte, to int) error {
	if err := w.e.Send(&w.comm.co, "Finalize", to, engine.ProfileTag, b, p2p.Standard); err != nil {
		return w.comm.failure(fmt.Errorf("send the profile: %w", err), "Finalize", to, noTag, len(b))
	}
	return nil
}

func (w *World) recvBytes(b []byte, from int) error {
	if _, err := w.e.Recv(&w.comm.co, "Finalize", from, int32(from), engine.ProfileTag, b); err != nil {
		return w.comm.failure(fmt.Errorf("receive the profile: %w", err), "Finalize", from, noTag, len(b))
	}
	return nil
}

// maxPart is more than the size of a summary, which has some hundred names and classes,
// and of the list of recorded calls (arrivals.go).
const maxPart = 256 << 20
