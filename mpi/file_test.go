package mpi_test

// Files (MPI-4.1 chapter 14): each kind of call, errors, and random programs.

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// A file is what programs of Go that know nothing of ranks work with.
var _ interface {
	io.ReaderAt
	io.WriterAt
	io.ReadWriteSeeker
	io.Closer
} = (*mpi.File)(nil)

// fileName returns the name of a file, the same on all ranks.
func fileName(t *testing.T, c *mpi.Comm) string {
	t.Helper()
	name, err := mpi.BcastValue(c, filepath.Join(t.TempDir(), "file"), 0)
	noError(t, err, "BcastValue")
	return name
}

func openFile(t *testing.T, c *mpi.Comm, name string, flag int) *mpi.File {
	t.Helper()
	f, err := c.OpenFile(name, flag, mpi.FileHints{})
	noError(t, err, "OpenFile")
	return f
}

func transfers(t *testing.T, what string, want int) func(n int, err error) {
	return func(n int, err error) {
		t.Helper()
		if n != want || err != nil && err != io.EOF {
			t.Fatalf("%s: %d elements, %v; want %d", what, n, err, want)
		}
	}
}

func TestFile(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 5}, func(t *testing.T, c *mpi.Comm) {
		name := fileName(t, c)
		f := openFile(t, c, name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
		me, size := c.Rank(), c.Size()
		mine := bytes.Repeat([]byte{byte('a' + me)}, 10)
		transfers(t, "WriteAt", 10)(f.WriteAt(mine, int64(10*me)))
		noError(t, f.Sync(), "Sync")
		next := make([]byte, 10)
		transfers(t, "ReadAt", 10)(f.ReadAt(next, int64((me+1)%size*10)))
		if want := byte('a' + (me+1)%size); next[0] != want || next[9] != want {
			t.Errorf("read %q of the next rank", next)
		}
		n, err := f.ReadAt(next, int64(10*size-4))
		if n != 4 || err != io.EOF {
			t.Errorf("at the end of the file: %d bytes, %v", n, err)
		}
		if n, err := f.Size(); n != int64(10*size) || err != nil {
			t.Errorf("the size is %d, %v", n, err)
		}
		noError(t, f.SetSize(5), "SetSize")
		noError(t, f.Preallocate(100), "Preallocate")
		if n, _ := f.Size(); n != 100 {
			t.Errorf("the size is %d after Preallocate", n)
		}
		if at, err := f.Seek(-3, io.SeekEnd); at != 97 || err != nil {
			t.Errorf("Seek returns %d, %v", at, err)
		}
		text, err := io.ReadAll(f) // by the file pointer
		if len(text) != 3 || err != nil {
			t.Errorf("io.ReadAll returns %q, %v", text, err)
		}
		noError(t, f.Close(), "Close")
		wantClass(t, f.Close(), mpi.ErrFile, "a second Close")
		_, err = f.ReadAt(next, 0)
		wantClass(t, err, mpi.ErrFile, "ReadAt after Close")
	})
}

func TestFileErrors(t *testing.T) {
	mpitest.Sizes(t, []int{1, 3}, func(t *testing.T, c *mpi.Comm) {
		name := fileName(t, c)
		_, err := c.OpenFile(name, os.O_RDONLY, mpi.FileHints{})
		wantClass(t, err, mpi.ErrNoSuchFile, "a missing file")
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is not fs.ErrNotExist", err)
		}
		f := openFile(t, c, name, os.O_WRONLY|os.O_CREATE)
		_, err = c.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mpi.FileHints{})
		wantClass(t, err, mpi.ErrFileExists, "an existing file")
		_, err = f.ReadAt(make([]byte, 1), 0)
		wantClass(t, err, mpi.ErrAccess, "reading")
		_, err = f.WriteAt(make([]byte, 1), -1)
		wantClass(t, err, mpi.ErrArg, "a negative offset")
		_, err = f.Seek(-1, io.SeekStart)
		wantClass(t, err, mpi.ErrArg, "Seek")
		twice, err := mpi.IndexedBlock[byte](1, []int{0, 0})
		noError(t, err, "IndexedBlock")
		_, err = mpi.OpenView(f, 0, twice)
		wantClass(t, err, mpi.ErrType, "a view that overlaps itself")
		noError(t, f.Close(), "Close")
		if c.Size() > 1 {
			_, err = c.OpenFile(name, map[bool]int{true: os.O_RDONLY, false: os.O_RDWR}[c.Rank() == 0], mpi.FileHints{})
			wantClass(t, err, mpi.ErrNotSame, "different flags")
		}
		_, err = c.OpenFile(filepath.Dir(name), os.O_RDWR, mpi.FileHints{})
		wantClass(t, err, mpi.ErrBadFile, "a folder")
	})
}

// TestFileView distributes the columns of a matrix.
func TestFileView(t *testing.T) {
	mpitest.Sizes(t, []int{1, 4}, func(t *testing.T, c *mpi.Comm) {
		const rows, each, head = 7, 3, 5
		f := openFile(t, c, fileName(t, c), os.O_RDWR|os.O_CREATE)
		cols := each * c.Size()
		block, err := mpi.Subarray[int32]([]int{rows, cols}, []int{rows, each}, []int{0, each * c.Rank()})
		noError(t, err, "Subarray")
		v, err := mpi.OpenView(f, head, block)
		noError(t, err, "OpenView")
		mine := make([]int32, rows*each)
		for i := range mine {
			mine[i] = int32(i/each*cols + each*c.Rank() + i%each)
		}
		transfers(t, "WriteAll", len(mine))(v.WriteAll(mine))
		if at := v.Offset(each); at != head+int64(4*(cols+each*c.Rank())) {
			t.Errorf("the second row begins at byte %d", at)
		}
		noError(t, f.Sync(), "Sync")
		all, err := mpi.OpenView[int32](f, head, nil)
		noError(t, err, "OpenView")
		got := make([]int32, rows*cols)
		transfers(t, "ReadAt", len(got))(all.ReadAt(got, 0))
		for i, x := range got {
			if x != int32(i) {
				t.Fatalf("element %d of the matrix is %d", i, x)
			}
		}
		if at, err := v.Seek(0, io.SeekEnd); at != rows*each || err != nil {
			t.Errorf("the view ends at %d, %v", at, err)
		}
		noError(t, f.Close(), "Close")
	})
}

// TestFileInterleavedCopies writes through file types whose copies begin within each other, as those
// of record variables of PnetCDF do. Each rank has a part of the file of its own.
func TestFileInterleavedCopies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2}, func(t *testing.T, c *mpi.Comm) {
		const far, each = 4, 4
		f := openFile(t, c, fileName(t, c), os.O_RDWR|os.O_CREATE)
		pair, err := mpi.Vector[int32](2, 1, far)
		noError(t, err, "Vector")
		next, err := pair.Resized(1)
		noError(t, err, "Resized")
		v, err := mpi.OpenView(f, int64(8*far*c.Rank()), next)
		noError(t, err, "OpenView")
		mine := make([]int32, 2*each) // copy i has the elements i and i+far
		for i := range mine {
			mine[i] = int32(100*c.Rank() + i/2 + i%2*far)
		}
		transfers(t, "WriteAtAll", len(mine))(v.WriteAtAll(mine, 0))
		noError(t, f.Sync(), "Sync")
		got := make([]int32, len(mine))
		transfers(t, "ReadAtAll", len(got))(v.ReadAtAll(got, 0))
		if !slices.Equal(got, mine) {
			t.Errorf("read %v, want %v", got, mine)
		}
		all, err := mpi.OpenView[int32](f, 0, nil)
		noError(t, err, "OpenView")
		whole := make([]int32, 2*far*c.Size())
		transfers(t, "ReadAt", len(whole))(all.ReadAt(whole, 0))
		for i, x := range whole {
			if want := int32(100*(i/(2*far)) + i%(2*far)); x != want {
				t.Fatalf("element %d of the file is %d, want %d", i, x, want)
			}
		}
		noError(t, f.Close(), "Close")
	})
}

// TestSharedFilePointer writes a record of each rank, in any order and in that of ranks.
func TestSharedFilePointer(t *testing.T) {
	mpitest.Sizes(t, []int{1, 4}, func(t *testing.T, c *mpi.Comm) {
		f := openFile(t, c, fileName(t, c), os.O_RDWR|os.O_CREATE)
		v, err := mpi.OpenView[int64](f, 0, nil)
		noError(t, err, "OpenView")
		for i := range 5 {
			record := []int64{int64(c.Rank()), int64(i)}
			if i%2 == 0 {
				transfers(t, "WriteShared", 2)(v.WriteShared(record))
			} else {
				_, err := v.IwriteShared(record).Wait()
				noError(t, err, "IwriteShared")
			}
		}
		noError(t, c.Barrier(), "Barrier")
		if at, err := v.SharedPointer(); at != int64(10*c.Size()) || err != nil {
			t.Errorf("the shared pointer is %d, %v", at, err)
		}
		transfers(t, "WriteOrdered", c.Rank())(v.WriteOrdered(slices.Repeat([]int64{int64(c.Rank())}, c.Rank())))
		noError(t, f.Sync(), "Sync")
		seen := map[[2]int64]bool{}
		all := make([]int64, 10*c.Size())
		transfers(t, "ReadAt", len(all))(v.ReadAt(all, 0))
		for i := 0; i < len(all); i += 2 {
			seen[[2]int64{all[i], all[i+1]}] = true
		}
		if len(seen) != 5*c.Size() {
			t.Errorf("%d of %d records are in the file: %v", len(seen), 5*c.Size(), all)
		}
		noError(t, v.SeekShared(int64(10*c.Size()), io.SeekStart), "SeekShared")
		mine := make([]int64, c.Rank())
		transfers(t, "ReadOrdered", len(mine))(v.ReadOrdered(mine))
		for _, x := range mine {
			if x != int64(c.Rank()) {
				t.Errorf("read %v in order", mine)
			}
		}
		noError(t, f.Close(), "Close")
	})
}

// TestFileAtomicMode lets all ranks write the same pieces: those of one rank are in the file.
func TestFileAtomicMode(t *testing.T) {
	mpitest.Sizes(t, []int{4}, func(t *testing.T, c *mpi.Comm) {
		f := openFile(t, c, fileName(t, c), os.O_RDWR|os.O_CREATE)
		noError(t, f.SetAtomic(true), "SetAtomic")
		every, err := mpi.Vector[byte](100, 1, 2)
		noError(t, err, "Vector")
		v, err := mpi.OpenView(f, 0, every)
		noError(t, err, "OpenView")
		for range 20 {
			transfers(t, "WriteAt", 100)(v.WriteAt(bytes.Repeat([]byte{byte(1 + c.Rank())}, 100), 0))
			got := make([]byte, 100)
			transfers(t, "ReadAt", 100)(v.ReadAt(got, 0))
			if !bytes.Equal(got, bytes.Repeat(got[:1], 100)) {
				t.Fatalf("pieces of several ranks: %v", got)
			}
		}
		noError(t, f.Close(), "Close")
	})
}

var filePrograms = flag.Int("file.programs", 30, "random programs of TestFileRandom for each number of ranks")

// TestFileRandom runs random programs and compares file and buffers with a list of bytes.
func TestFileRandom(t *testing.T) {
	seed := seeded.Seed()
	t.Logf("repeat with SEED=%d", seed)
	programs := *filePrograms
	if testing.Short() {
		programs = 5
	}
	const together = 25 // a job has a time limit
	for ranks := 1; ranks <= 8; ranks++ {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			for first := 0; first < programs && !t.Failed(); first += together {
				mpitest.Run(t, ranks, func(t *testing.T, c *mpi.Comm) {
					agreed := []uint64{seed} // processes of a launcher have a seed each: that of rank 0 counts
					noError(t, mpi.Bcast(c, agreed, 0), "Bcast")
					for i := first; i < min(first+together, programs); i++ {
						runFileProgram(t, c, seeded.New(agreed[0]+uint64(10000*ranks+i)))
					}
				})
			}
		})
	}
}

// fileModel is the oracle: the file, and what each rank sees of it.
type fileModel struct {
	file  []byte
	unit  int
	views [][]int // offset of each element, by rank
	pos   []int
}

func (m *fileModel) put(off int, b []byte) {
	if n := off + len(b); n > len(m.file) {
		m.file = append(m.file, make([]byte, n-len(m.file))...)
	}
	copy(m.file[off:], b)
}

// runFileProgram runs a program that all ranks know: the random numbers are the same on all of them.
func runFileProgram(t *testing.T, c *mpi.Comm, random *rand.Rand) {
	hints := mpi.FileHints{BufferSize: 1 + random.IntN(300), Aggregators: random.IntN(4), Alignment: random.IntN(3) * 16,
		CollectiveWrite: []string{"", "always", "never"}[random.IntN(3)], CollectiveRead: []string{"", "always", "never"}[random.IntN(3)]}
	f, err := c.OpenFile(fileName(t, c), os.O_RDWR|os.O_CREATE, hints)
	noError(t, err, "OpenFile")
	m := &fileModel{}
	for range 3 {
		v := m.openView(t, c, f, random)
		for range 6 {
			m.step(t, c, f, v, random)
		}
	}
	noError(t, f.Close(), "Close")
}

// openView opens views of random pieces, which do not overlap those of other ranks.
func (m *fileModel) openView(t *testing.T, c *mpi.Comm, f *mpi.File, random *rand.Rand) *mpi.FileView[[3]byte] {
	const pieces, copies = 12, 40
	m.unit = 3
	disp := random.IntN(20)
	m.views, m.pos = make([][]int, c.Size()), make([]int, c.Size())
	if random.IntN(4) == 0 { // contiguous
		const room = 300
		for r := range m.views {
			for e := range room {
				m.views[r] = append(m.views[r], disp+3*(r*room+e))
			}
		}
		v, err := mpi.OpenView[[3]byte](f, int64(disp+3*c.Rank()*room), nil)
		noError(t, err, "OpenView")
		return v
	}
	lens, displs := make([][]int, c.Size()), make([][]int, c.Size())
	at := 0
	for range pieces {
		r, n := random.IntN(c.Size()), 1+random.IntN(9)
		lens[r], displs[r] = append(lens[r], n), append(displs[r], at)
		at += n + max(0, random.IntN(6)-3)
	}
	for r := range m.views {
		for k := range copies {
			for i, n := range lens[r] {
				for e := range n {
					m.views[r] = append(m.views[r], disp+3*(k*at+displs[r][i]+e))
				}
			}
		}
	}
	l, err := mpi.Indexed[[3]byte](lens[c.Rank()], displs[c.Rank()])
	noError(t, err, "Indexed")
	l, err = l.Resized(at)
	noError(t, err, "Resized")
	v, err := mpi.OpenView(f, int64(disp), l)
	noError(t, err, "OpenView")
	return v
}

// step makes one call on all ranks.
func (m *fileModel) step(t *testing.T, c *mpi.Comm, f *mpi.File, v *mpi.FileView[[3]byte], random *rand.Rand) {
	write, all, pointer, started := random.IntN(2) == 0, random.IntN(2) == 0, random.IntN(2) == 0, random.IntN(3) == 0
	old := slices.Clone(m.file)
	var got, want [][3]byte
	var run func() (int, error)
	eof := false
	for r := range c.Size() {
		room := len(m.views[r])
		n := random.IntN(min(room, 150) + 1)
		off := random.IntN(room - n + 1)
		if pointer {
			off, n = m.pos[r], min(n, room-m.pos[r])
		}
		data := make([][3]byte, n)
		there := 0
		for i := range data {
			data[i] = [3]byte{byte(random.Uint32()), byte(random.Uint32()), byte(r)}
			at := m.views[r][off+i]
			if write {
				m.put(at, data[i][:])
			} else if at+3 <= len(old) {
				copy(data[i][:], old[at:])
				there++
			}
		}
		if write {
			there = n
		}
		if pointer {
			m.pos[r] = off + there
			if started {
				m.pos[r] = off + n
			}
		}
		if r == c.Rank() {
			want = data[:there]
			got = make([][3]byte, n)
			if write {
				copy(got, data)
			}
			eof = !write && there < n
			run = fileCall(v, write, all, pointer, started, got, int64(off))
		}
	}
	n, err := run()
	if err != nil && err != io.EOF || n != len(want) && !(eof && n == len(want)) {
		t.Fatalf("rank %d: write %v, all %v, pointer %v, started %v: %d of %d elements, %v", c.Rank(), write, all, pointer, started, n, len(want), err)
	}
	if !slices.Equal(got[:n], want) {
		t.Fatalf("rank %d: all %v, pointer %v, started %v reads %v, want %v", c.Rank(), all, pointer, started, got[:n], want)
	}
	noError(t, c.Barrier(), "Barrier")
	whole := make([]byte, len(m.file)+1)
	if n, err := f.ReadAt(whole, 0); n != len(m.file) || err != io.EOF || !bytes.Equal(whole[:n], m.file) {
		t.Fatalf("rank %d: write %v, all %v, pointer %v, started %v: the file of %d bytes differs: %d, %v", c.Rank(), write, all, pointer, started, len(m.file), n, err)
	}
	noError(t, c.Barrier(), "Barrier")
}

// fileCall returns a call that reads or writes.
func fileCall(v *mpi.FileView[[3]byte], write, all, pointer, started bool, buf [][3]byte, off int64) func() (int, error) {
	type form struct{ write, all, pointer bool }
	k := form{write, all, pointer}
	if !started {
		return map[form]func() (int, error){
			{false, false, false}: func() (int, error) { return v.ReadAt(buf, off) },
			{false, false, true}:  func() (int, error) { return v.Read(buf) },
			{false, true, false}:  func() (int, error) { return v.ReadAtAll(buf, off) },
			{false, true, true}:   func() (int, error) { return v.ReadAll(buf) },
			{true, false, false}:  func() (int, error) { return v.WriteAt(buf, off) },
			{true, false, true}:   func() (int, error) { return v.Write(buf) },
			{true, true, false}:   func() (int, error) { return v.WriteAtAll(buf, off) },
			{true, true, true}:    func() (int, error) { return v.WriteAll(buf) },
		}[k]
	}
	return func() (int, error) {
		st, err := map[form]func() mpi.Request{
			{false, false, false}: func() mpi.Request { return v.IreadAt(buf, off) },
			{false, false, true}:  func() mpi.Request { return v.Iread(buf) },
			{false, true, false}:  func() mpi.Request { return v.IreadAtAll(buf, off) },
			{false, true, true}:   func() mpi.Request { return v.IreadAll(buf) },
			{true, false, false}:  func() mpi.Request { return v.IwriteAt(buf, off) },
			{true, false, true}:   func() mpi.Request { return v.Iwrite(buf) },
			{true, true, false}:   func() mpi.Request { return v.IwriteAtAll(buf, off) },
			{true, true, true}:    func() mpi.Request { return v.IwriteAll(buf) },
		}[k]().Wait()
		n, _ := mpi.Count[[3]byte](st)
		return n, err
	}
}
