package mpi

// What a job did (P3 section 3). Ranks count all the time, in memory of their own. A
// job that wants a profile (Config.Profile) combines the counters when it ends:
//
//	join       rank 0 makes the file, so that a bad name is told before the work
//	Finalize   each rank takes its counters, before the messages that combine them;
//	           a binomial tree brings the sum to rank 0, which shows it
//
// A rank that died takes the profile with it, and rank 0 says so, if it can.

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/prof"
)

// profileText is the Config.Profile that prints.
const profileText = "text"

// profileTag is in the context of the world's collectives, away from the other tags
// there (coll_call.go, coll_node.go).
const profileTag = math.MaxInt32 - 2

// Profile gives what this rank has counted since it joined the job. Messages that the
// library sends for itself, as for collectives, are among those counted. To see what a
// part of a program does, call it before and after.
func Profile(c *Comm) prof.Counters { return c.w.counters() }

func (w *World) counters() prof.Counters {
	p := w.e.Counters()
	p.Add(prof.MemoryBuffered, uint64(w.buffered.Load()))
	p.Add(prof.MemorySegments, w.teams.share())
	return p
}

func checkProfile(s string) error {
	if s == "" || s == profileText || strings.HasSuffix(s, ".json") {
		return nil
	}
	return fmt.Errorf("mpi: Config.Profile (MUSTER_PROFILE) is %q; want %s, or the name of a file that ends in .json", s, profileText)
}

// profile is how the profile of a job is shown. Ranks other than 0 have no output.
type profile struct {
	on   bool
	text io.Writer // nil: none
	file string    // ""; none
}

// openProfile gets ready to show a profile at the end.
func openProfile(cfg *Config, rank int) (p profile, err error) {
	p.on = cfg.Profile != ""
	switch {
	case !p.on || rank != 0:
	case cfg.Profile == profileText:
		p.text = os.Stderr
	default:
		// The program may change its directory before it ends.
		if p.file, err = filepath.Abs(cfg.Profile); err == nil {
			err = os.WriteFile(p.file, nil, 0o666)
		}
		if err != nil {
			return p, fmt.Errorf("mpi: Config.Profile (MUSTER_PROFILE) is %q: %w; name a file that can be written", cfg.Profile, err)
		}
	}
	return p, nil
}

// report combines the counters of all ranks and shows them. The error is that of
// writing; that a rank has died is what the next call will find.
func (w *World) report() error {
	if !w.profile.on {
		return nil
	}
	counters := w.counters()
	counters.Add(prof.CollectivesShared, w.teams.calls()+w.gates) // nobody is in one any more
	sum, err := w.combine(prof.Summarize(&counters))
	if err != nil {
		w.noProfile(err)
		return nil
	}
	if w.profile.text != nil {
		fmt.Fprint(w.profile.text, "muster: ", sum.Text())
	}
	if w.profile.file != "" {
		if err := os.WriteFile(w.profile.file, sum.Encode(), 0o666); err != nil {
			return w.comm.refuse(ErrOther, "Finalize", "write the profile: %w", err)
		}
	}
	return nil
}

// noProfile says that there will be none.
func (w *World) noProfile(why error) {
	if w.profile.text != nil {
		fmt.Fprintf(w.profile.text, "muster: no profile: %v\n", why)
		w.profile.text = nil // once
	}
}

// combine merges the summaries of all ranks along a binomial tree. At rank 0 the result
// is that of the job.
func (w *World) combine(s *prof.Summary) (*prof.Summary, error) {
	c := w.comm
	for bit := 1; bit < c.size; bit <<= 1 {
		if c.rank&bit != 0 {
			return s, w.sendSummary(s, c.rank-bit)
		}
		if from := c.rank + bit; from < c.size {
			other, err := w.recvSummary(from)
			if err != nil {
				return nil, err
			}
			s.Merge(other)
		}
	}
	return s, nil
}

// sendSummary sends a summary, its length first.
func (w *World) sendSummary(s *prof.Summary, to int) error {
	b := s.Encode()
	for _, part := range [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b} {
		if err := w.e.Send(&w.comm.co, "Finalize", to, profileTag, part, p2p.Standard); err != nil {
			return w.comm.failure(fmt.Errorf("send the profile: %w", err), "Finalize", to, noTag, len(part))
		}
	}
	return nil
}

func (w *World) recvSummary(from int) (*prof.Summary, error) {
	recv := func(b []byte) error {
		if _, err := w.e.Recv(&w.comm.co, "Finalize", from, int32(from), profileTag, b); err != nil {
			return w.comm.failure(fmt.Errorf("receive the profile: %w", err), "Finalize", from, noTag, len(b))
		}
		return nil
	}
	var length [8]byte
	if err := recv(length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxSummary {
		return nil, w.comm.refuse(ErrIntern, "Finalize", "rank %d has a profile of %d bytes, more than there can be: does it run another version?", from, n)
	}
	b := make([]byte, n)
	if err := recv(b); err != nil {
		return nil, err
	}
	s, err := prof.Decode(b)
	if err != nil {
		return nil, w.comm.refuse(ErrIntern, "Finalize", "from rank %d: %w", from, err)
	}
	return s, nil
}

// maxSummary is more than a summary ever takes: some hundred names and classes.
const maxSummary = 16 << 20
