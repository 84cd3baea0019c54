package ddp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestTableAgainstMap applies the same operations to a table and to a map. The tags are
// drawn from few values, so that they collide in the table and gaps are closed.
func TestTableAgainstMap(t *testing.T) {
	random := rand.New(seeded(4))
	table := NewTable(fewTags{random}, 200)
	model := map[Tag]uint64{}
	tags := []Tag{}
	for step := range 20000 {
		if len(tags) < 20 || len(tags) < 150 && random.IntN(2) == 0 {
			base := uint64(step) * 64
			tag, err := table.Register(Region{Mem: rdma.MemOf(make([]byte, 8)), Base: base, Access: rdma.RemoteRead})
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := model[tag]; twice || tag == 0 {
				t.Fatalf("tag %#x was reused", tag)
			}
			model[tag] = base
			tags = append(tags, tag)
		} else {
			i := random.IntN(len(tags))
			if !table.Deregister(tags[i]) || table.Deregister(tags[i]) {
				t.Fatalf("step %d: tag %#x does not end exactly once", step, tags[i])
			}
			delete(model, tags[i])
			tags[i] = tags[len(tags)-1]
			tags = tags[:len(tags)-1]
		}
		if table.Len() != len(model) {
			t.Fatalf("step %d: %d regions, want %d", step, table.Len(), len(model))
		}
		probe := Tag(random.Uint32N(1 << 10))
		base, in := model[probe]
		if _, f := table.Source(0, 0, probe, base, 8); (f == NoFault) != in {
			t.Fatalf("step %d: tag %#x: %v, want it found: %v", step, probe, f, in)
		}
	}
	for tag, base := range model {
		if _, f := table.Source(0, 0, tag, base, 8); f != NoFault {
			t.Fatalf("tag %#x is lost: %v", tag, f)
		}
	}
}

// fewTags draws tags below 1024.
type fewTags struct{ from *rand.Rand }

func (c fewTags) Read(b []byte) (int, error) {
	v := c.from.Uint32N(1 << 10)
	return copy(b, []byte{0, 0, byte(v >> 8), byte(v)}), nil
}

func TestRegisterRefuses(t *testing.T) {
	mem := rdma.MemOf(make([]byte, 16))
	t.Run("full", func(t *testing.T) {
		table := NewTable(seeded(1), 2)
		for range 2 {
			if _, err := table.Register(Region{Mem: mem}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := table.Register(Region{Mem: mem}); !errors.Is(err, rdma.ErrNoResources) {
			t.Fatalf("%v, want ErrNoResources", err)
		}
	})
	t.Run("wrapping", func(t *testing.T) {
		_, err := NewTable(seeded(1), 2).Register(Region{Mem: mem, Base: 1<<64 - 8})
		if err == nil || !strings.Contains(err.Error(), "64-bit") {
			t.Fatalf("%v, want an error about the address space", err)
		}
	})
	t.Run("invalidable by all", func(t *testing.T) {
		_, err := NewTable(seeded(1), 2).Register(Region{Mem: mem, Invalidable: true})
		if err == nil || !strings.Contains(err.Error(), "name its stream") {
			t.Fatalf("%v, want an error that asks for a stream", err)
		}
	})
	t.Run("no random", func(t *testing.T) {
		table := NewTable(bytes.NewReader([]byte{1, 2}), 2)
		if _, err := table.Register(Region{Mem: mem}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%v, want the error of the source", err)
		}
		if table.Len() != 0 {
			t.Fatal("a region without a tag is in the table")
		}
	})
	t.Run("tag 0 and a tag in use are drawn again", func(t *testing.T) {
		table := NewTable(bytes.NewReader([]byte{0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 6}), 2)
		for _, want := range []Tag{5, 6} {
			if tag, err := table.Register(Region{Mem: mem}); tag != want || err != nil {
				t.Fatalf("tag %d, %v; want %d", tag, err, want)
			}
		}
	})
}

// TestReachBounds tries every edge of a region at the end of the address space.
func TestReachBounds(t *testing.T) {
	mem := pattern(16)
	const base = 1<<64 - 17
	table := NewTable(seeded(1), 2)
	tag, err := table.Register(Region{Mem: rdma.MemOf(mem), Base: base, Access: rdma.RemoteWrite | rdma.RemoteRead})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		to, n          uint64
		placed, source Fault
	}{
		{"all", base, 16, NoFault, NoFault},
		{"last byte", base + 15, 1, NoFault, NoFault},
		{"one before", base - 1, 1, FaultTagBounds, FaultSourceBounds},
		{"begins before", base - 1, 2, FaultTagBounds, FaultSourceBounds},
		{"all but the first", base + 1, 15, NoFault, NoFault},
		{"ends after", base, 17, FaultTagWrap, FaultSourceWrap},
		{"wraps", base + 8, 1 << 63, FaultTagWrap, FaultSourceWrap},
		{"wraps by the length", base, 1<<64 - 1, FaultTagWrap, FaultSourceWrap},
		{"address 0", 0, 1, FaultTagBounds, FaultSourceBounds},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, f := table.Placement(0, 0, tag, c.to, c.n)
			wantFault(t, "Place", f, c.placed)
			if f == NoFault && (uint64(len(got)) != c.n || cap(got) != len(got) || &got[0] != &mem[c.to-base]) {
				t.Fatalf("another piece: %d bytes, room for %d", len(got), cap(got))
			}
			_, f = table.Source(0, 0, tag, c.to, c.n)
			wantFault(t, "Source", f, c.source)
		})
	}
}

func TestReachAllocatesNothing(t *testing.T) {
	table := NewTable(seeded(1), 100)
	var tag Tag
	for range 100 {
		var err error
		if tag, err = table.Register(Region{Mem: rdma.MemOf(make([]byte, 64)), Access: rdma.RemoteWrite}); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, f := table.Placement(0, 1, tag, 8, 16); f != NoFault {
			t.Fatal(f)
		}
		if _, f := table.Placement(0, 1, tag+1, 8, 16); f != FaultTag {
			t.Fatal(f)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a placement", n)
	}
}
