package engine

import (
	"errors"
	"testing"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/rdma"
)

// pinning is a device that only registers memory.
type pinning struct {
	rdma.Device
	attr rdma.Attr
	live map[uint64]int
	next uint64
	most int // registrations it allows
}

func newPinning() *pinning {
	return &pinning{attr: rdma.Attr{Name: "pinning", LocalKeys: true, Pins: true, MaxSend: 1 << 14, MaxInline: 1 << 13},
		live: make(map[uint64]int), most: 1 << 20}
}

func (d *pinning) Attr() *rdma.Attr { return &d.attr }

func (d *pinning) Register(mem []byte, _ rdma.Access) (rdma.MR, error) {
	if len(d.live) >= d.most {
		return rdma.MR{}, errors.New("no more may be locked")
	}
	d.next++
	d.live[d.next] = len(mem)
	return rdma.MR{Base: rdma.MemOf(mem).Addr(), Len: uint64(len(mem)), RKey: d.next, LKey: uint32(d.next)}, nil
}

func (d *pinning) Deregister(mr rdma.MR) error {
	if _, ok := d.live[mr.RKey]; !ok {
		return errors.New("no such registration")
	}
	delete(d.live, mr.RKey)
	return nil
}

func (d *pinning) lane() *lane {
	l := &lane{dev: d, attr: &d.attr, regs: regcache.New(d, regcache.Config{})}
	l.openStages()
	return l
}

func TestStageSizes(t *testing.T) {
	dev := newPinning()
	s := dev.lane().stages
	for _, n := range []int{1, 1023, 1024, 1025, 4096, 8192, 8193, 40_000, stageMost - 1, stageMost} {
		b := s.take(n)
		if b == nil || len(b.Mem) < n || len(b.Mem) > max(2*n, 1<<stageLow) || b.LKey == 0 {
			t.Fatalf("for %d bytes: %+v", n, b)
		}
		s.put(b)
		if again := s.take(n); again != b {
			t.Errorf("for %d bytes: not the block that was returned", n)
		}
	}
	if err := s.close(); err != nil || len(dev.live) != 0 {
		t.Errorf("close: %v, %d registrations left", err, len(dev.live))
	}
}

func TestStageLimit(t *testing.T) {
	dev := newPinning()
	s := dev.lane().stages
	var blocks []*p2p.Stage
	seen := make(map[*byte]bool)
	for {
		b := s.take(8 << 10)
		if b == nil {
			break
		}
		if seen[&b.Mem[0]] {
			t.Fatal("a block is in use twice")
		}
		seen[&b.Mem[0]] = true
		blocks = append(blocks, b)
	}
	if want := stageMemory / (8 << 10); len(blocks) != want || s.bytes() != stageMemory {
		t.Errorf("%d blocks in %d bytes, want %d in %d", len(blocks), s.bytes(), want, stageMemory)
	}
	for _, b := range blocks {
		s.put(b)
	}
	if s.take(8<<10) == nil {
		t.Error("no block after all were returned")
	}
}

func TestStageRegisterRefused(t *testing.T) {
	dev := newPinning()
	s := dev.lane().stages
	first := s.take(stageMost)
	dev.most = 1
	if first == nil || s.take(stageMost) != nil {
		t.Fatal("a block although the device refuses")
	}
	dev.most = 2
	if s.take(stageMost) != nil || len(dev.live) != 1 {
		t.Error("the device is called again after it refused")
	}
	if s.put(first); s.take(stageMost) != first {
		t.Error("the existing block is not reused")
	}
}

// A put or get counts as a use. A frequently used buffer is accessed directly, unless the
// device cannot register it.
func TestTransferBufferCountsUses(t *testing.T) {
	dev := newPinning()
	d := dev.lane()
	d.sources = &sources{uses: regcache.NewUses(regcache.UsesConfig{Frequent: func(int) uint32 { return 3 }})}
	const size = 8 << 10
	d.sources.limits[UseOneSided][sourceClass(size)] = 3
	use := func(mem []byte) (direct bool) {
		mr, direct, via := d.transferBuffer(mem)
		if direct == (via != nil) {
			t.Fatalf("direct %v with block %v", direct, via)
		}
		if direct {
			if err := d.regs.Put(mr); err != nil {
				t.Fatal(err)
			}
		} else {
			d.stages.put(via)
		}
		return direct
	}
	often, other := make([]byte, size), make([]byte, size)
	for i := range 6 {
		if direct := use(often); direct != (i >= 2) {
			t.Errorf("use %d: direct is %v", i, direct)
		}
	}
	dev.most = len(dev.live)
	d.regs.Drop(often) // eviction cannot make room
	dev.most--
	for range 3 {
		if use(other) {
			t.Error("a buffer that cannot be registered is used directly")
		}
	}
	if st := d.sources.stats; st.Direct != 4 || st.Copied != 4 || st.Refused != 1 {
		t.Errorf("counted %+v, want 4 direct, 4 copied, 1 refused", st)
	}
	dev.most = 1 << 20
	short, seldom := other[:127], make([][]byte, 200)
	for i := range seldom {
		seldom[i] = make([]byte, size)
	}
	d.stages.most = 1 << 20
	next := 0
	if n := testing.AllocsPerRun(len(seldom)/2, func() {
		use(short) // too short to be counted
		use(seldom[next])
		use(often)
		next++
	}); n != 0 {
		t.Errorf("%v allocations per transfer, want 0", n)
	}
}

func TestStagesNeedPinning(t *testing.T) {
	for _, a := range []rdma.Attr{{LocalKeys: true}, {Pins: true}, {}} {
		d := &lane{attr: &a}
		if d.openStages(); d.stages != nil {
			t.Errorf("LocalKeys %v, Pins %v: the lane has bounce buffers", a.LocalKeys, a.Pins)
		}
	}
}

func TestSettleMargin(t *testing.T) {
	for _, c := range []struct {
		name   string
		copied float64
		end    float64
		want   [uses]uint32
	}{
		{"C < V", 40, 0, [uses]uint32{}},
		{"C < 2V", 110, 0, [uses]uint32{UseOneSided: 45}},
		{"C ≥ 2V", 120, 0, [uses]uint32{67, 67, 41}},
		{"slow completion", 120, 200_000, [uses]uint32{UseOneSided: 41}},
		{"completion within a round trip", 120, 1500, [uses]uint32{UseGoesOn: 67, UseOneSided: 41}},
	} {
		s := &sources{least: p2p.MaxSize}
		r := SourceRow{Lo: 4096, Hi: 8191, Register: 4000, Copy: c.copied, Lookup: [uses]float64{60, 60, 21}}
		s.settle(&r, &rdma.Attr{EndCost: c.end, SendCost: rdma.Cost{Fixed: 1000}, PutCost: rdma.Cost{Fixed: 4000}}, false)
		if r.Uses != c.want {
			t.Errorf("%s: registration pays after %v uses, want %v", c.name, r.Uses, c.want)
		}
		if asks := s.least == 4096; asks != (c.want[UseWaits]+c.want[UseGoesOn] > 0) {
			t.Errorf("%s: sends use the table: %v", c.name, asks)
		}
	}
}

func TestSettleFloor(t *testing.T) {
	for _, c := range []struct {
		put  float64
		want uint32
	}{{5000, 41}, {4949, 41}, {4951, 41}, {5051, 0}} {
		s := &sources{}
		r := SourceRow{Lo: 4096, Hi: 8191, Register: 4000, Copy: 121, Lookup: [uses]float64{200, 200, 21}}
		if s.settle(&r, &rdma.Attr{PutCost: rdma.Cost{Fixed: c.put}}, false); r.Uses != [uses]uint32{UseOneSided: c.want} {
			t.Errorf("a gain of 100 ns in %v: registration pays after %v uses, want %d", c.put, r.Uses, c.want)
		}
	}
}

func TestSettleNeedsSecondUse(t *testing.T) {
	for _, always := range []bool{false, true} {
		s := &sources{}
		r := SourceRow{Lo: 64 << 10, Hi: 128<<10 - 1, Register: 5000, Copy: 1000, Lookup: [uses]float64{20, 20, 20}}
		want := uint32(2)
		if s.settle(&r, &rdma.Attr{}, always); always {
			want = 1
		}
		for u := range uses {
			if got := s.limits[u][sourceClass(r.Hi)]; got != want {
				t.Errorf("always %v: use %d: registered at use %d, want %d", always, u, got, want)
			}
		}
	}
}

func TestMeasureSources(t *testing.T) {
	dev := newPinning()
	d := dev.lane()
	rows, err := measureSources(dev, d.regs)
	if err != nil || len(rows) != sourceHigh-sourceLow+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if r.Copy <= 0 || r.Register <= 0 || r.Lookup[UseWaits] <= 0 || r.Lookup[UseOneSided] < 0 || r.Lookup[UseOneSided] > 10_000 {
			t.Errorf("invalid row %+v", r)
		}
	}
	if len(dev.live) != 0 {
		t.Errorf("%d registrations left after the measurement", len(dev.live))
	}
}
