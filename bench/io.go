package bench

// Files: the patterns of IOR in the folder of temporary files (TMPDIR). Each rank has ioBytes. The main
// figure is a collective write of pieces that alternate between the ranks. Further figures are the same read; a
// contiguous segment of each rank, written and read alone; pieces read alone in random order; and
// all data written by one rank.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const ioBytes = 4 << 20

func ioBenchmarks() []Benchmark {
	return []Benchmark{{Name: "io", Title: "Collective I/O Test", Ranks: 4, AnyRanks: true, Sizes: []int{64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20},
		Doc:    "bandwidth of a collective write by length of pieces; beside it reads, segments of ranks, random reads, and one rank alone",
		Metric: "bandwidth", Unit: "MB/s", Column: "Write (MB/s)", Run: measureIO}}
}

// ioTest has a file and what a rank reads and writes.
type ioTest struct {
	f       *mpi.File
	strided *mpi.FileView[byte]
	data    []byte
	got     []byte
	offsets []int64 // of pieces in the file, in random order
	me, all int64   // offset of the segment, and length of the file
}

func measureIO(c *mpi.Comm, p *Params, emit func(Result)) error {
	name, err := os.MkdirTemp("", "muster-io-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(name)
	if name, err = mpi.BcastValue(c, name+"/file", 0); err != nil {
		return err
	}
	for _, size := range p.Sizes {
		if err := measurePieces(c, p, name, size, emit); err != nil {
			return err
		}
	}
	return c.Barrier() // the folder is removed now
}

func measurePieces(c *mpi.Comm, p *Params, name string, size int, emit func(Result)) error {
	f, err := c.OpenFile(name, os.O_RDWR|os.O_CREATE, mpi.FileHints{})
	if err != nil {
		return err
	}
	t, err := newIOTest(c, f, size)
	if err != nil {
		return err
	}
	for i, k := range []struct {
		metric string
		once   func() (int, error)
	}{
		{"bandwidth", func() (int, error) { return t.strided.WriteAtAll(t.data, 0) }},
		{"read", func() (int, error) { return t.strided.ReadAtAll(t.got, 0) }},
		{"random read", t.readRandomly},
		{"segment write", func() (int, error) { return f.WriteAt(t.data, t.me) }},
		{"segment read", func() (int, error) { return f.ReadAt(t.got, t.me) }},
		{"one rank", func() (int, error) { return t.writeAlone(c) }},
	} {
		r, err := timeIO(c, p, size, k.once)
		if err != nil {
			return fmt.Errorf("%s: %w", k.metric, err)
		}
		r.Metric, r.Unit, r.Beside = k.metric, "MB/s", i > 0
		emit(r)
		if i == 1 && string(t.got) != string(t.data) {
			return fmt.Errorf("rank %d has not read what it has written", c.Rank())
		}
	}
	return f.Close()
}

func newIOTest(c *mpi.Comm, f *mpi.File, size int) (*ioTest, error) {
	pieces := ioBytes / size
	l, err := mpi.Vector[byte](pieces, size, size*c.Size())
	if err != nil {
		return nil, err
	}
	v, err := mpi.OpenView(f, int64(size*c.Rank()), l)
	if err != nil {
		return nil, err
	}
	t := &ioTest{f: f, strided: v, data: make([]byte, pieces*size), got: make([]byte, pieces*size), all: int64(pieces * size * c.Size())}
	t.me = int64(len(t.data) * c.Rank())
	for i := range t.data {
		t.data[i] = byte(c.Rank() + i/size + i)
	}
	random := rand.New(rand.NewPCG(1, uint64(c.Rank()))) // the same pieces in every run
	for range pieces {
		t.offsets = append(t.offsets, int64(random.IntN(pieces*c.Size())*size))
	}
	return t, nil
}

func (t *ioTest) readRandomly() (n int, err error) {
	size := len(t.got) / len(t.offsets)
	for i, off := range t.offsets {
		k, err := t.f.ReadAt(t.got[i*size:(i+1)*size], off)
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// writeAlone writes the data of all ranks by one system call for each.
func (t *ioTest) writeAlone(c *mpi.Comm) (int, error) {
	if c.Rank() != 0 {
		return 0, nil
	}
	for at := int64(0); at < t.all; at += int64(len(t.data)) {
		if _, err := t.f.WriteAt(t.data, at); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// timeIO returns the bandwidth of all ranks together in the median call.
func timeIO(c *mpi.Comm, p *Params, size int, once func() (int, error)) (Result, error) {
	n := p.Iterations
	if n == 0 {
		n = 20
	}
	var s samples
	for i := range n + 1 {
		if err := c.Barrier(); err != nil {
			return Result{}, err
		}
		begin := time.Now()
		if _, err := once(); err != nil {
			return Result{}, err
		}
		longest := []int64{int64(time.Since(begin))}
		if err := mpi.Allreduce(c, longest, longest, mpi.Max); err != nil {
			return Result{}, err
		}
		if i > 0 { // the first makes the file longer
			s.add(time.Duration(longest[0]), 1)
		}
	}
	bytes := float64(ioBytes / size * size * c.Size())
	r := s.rates(Result{Size: size}, bytes/1e6)
	r.Value = r.P50
	return r, nil
}
