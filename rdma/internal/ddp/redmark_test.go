package ddp

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// The attacks of ReDMArk (Rothenberger, Taranov, Perrig, Hoefler: "ReDMArk: Bypassing RDMA
// Security Mechanisms", USENIX Security 2021), as far as they concern this layer. The
// devices prevent impersonation on the network, with the job key.

// TestReDMArkGuessedKeys has one tag and tries its neighbors, its bits and many random
// ones. 100,000 guesses at 100 tags of 32 bits hit with a chance of 1 in 430; the seed is
// one that misses.
func TestReDMArkGuessedKeys(t *testing.T) {
	a, b := newPair(t, nil)
	var known Tag
	for range 100 {
		_, known = b.region(16, bothWays, nil)
	}
	try := func(guess Tag) {
		t.Helper()
		if _, f := a.send(a.stream.Write(guess, 0x1000, 4), pattern(4)); f != FaultTag {
			t.Fatalf("tag %#x, guessed from %#x: %v", guess, known, f)
		}
	}
	for d := Tag(1); d <= 10000; d++ {
		try(known + d)
		try(known - d)
	}
	for bit := range 32 {
		try(known ^ 1<<bit)
		try(known ^ 1<<bit ^ 1<<((bit+1)%32))
	}
	try(0)
	random := rand.New(seeded(5))
	for range 100000 {
		try(Tag(random.Uint32()))
	}
}

// TestReDMArkSequentialTags registers and deregisters like an attacker who wants to
// predict the next tag: it reveals neither the order nor a freed slot.
func TestReDMArkSequentialTags(t *testing.T) {
	table := NewTable(seeded(6), 100)
	seen := map[Tag]bool{}
	for range 5000 {
		tag, err := table.Register(Region{})
		if err != nil {
			t.Fatal(err)
		}
		for d := Tag(0); d <= 8; d++ {
			if seen[tag+d] || seen[tag-d] {
				t.Fatalf("tag %#x is next to one that was known", tag)
			}
		}
		seen[tag] = true
		table.Deregister(tag)
	}
}

// TestReDMArkForeignDomain has the right tag of a service that shares the device.
func TestReDMArkForeignDomain(t *testing.T) {
	_, b := newPair(t, nil)
	mem, tag := b.region(64, bothWays, func(r *Region) { r.Domain = 1 })
	wantRefused(t, b, mem, tag, 0x1000, FaultTagStream, FaultSourceStream)
}

// TestReDMArkOutOfBounds has a right tag and tries the memory around it.
func TestReDMArkOutOfBounds(t *testing.T) {
	a, b := newPair(t, nil)
	all := make([]byte, 3*64)
	tag, err := b.table.Register(Region{Mem: rdma.MemOf(all[64:128]), Base: 0x1000, Access: bothWays, Domain: testDomain})
	if err != nil {
		t.Fatal(err)
	}
	for to := uint64(0x1000 - 64); to < 0x1000+128; to++ {
		for _, n := range []uint32{1, 7, 64, 100} {
			inside := to >= 0x1000 && to+uint64(n) <= 0x1000+64
			if _, f := a.send(a.stream.Write(tag, to, n), pattern(100)[:n]); (f == NoFault) != inside {
				t.Fatalf("%d bytes at %#x: %v, inside: %v", n, to, f, inside)
			}
		}
	}
	wantBytes(t, "memory before", all[:64], make([]byte, 64))
	wantBytes(t, "memory after", all[128:], make([]byte, 64))
}

// TestReDMArkInjection injects messages into a stream without knowing its state.
func TestReDMArkInjection(t *testing.T) {
	a, b := newPair(t, nil)
	mem := make([]byte, 8)
	for i := range uint64(4) {
		b.buffers.post(i, mem)
	}
	for range 2 {
		if _, f := a.send(a.stream.Send(Send, 8, 0), make([]byte, 8)); f != NoFault {
			t.Fatal(f)
		}
	}
	for _, msn := range []uint32{0, 1, 2, 4, 5, 1 << 31, 1<<32 - 1} { // 3 is next
		_, f := b.take(encode(Header{Op: Send, Last: true, MSN: msn}, pattern(8)))
		wantFault(t, "injected message", f, FaultMSN)
	}
	for _, h := range []Header{
		{Op: ReadResponse, Last: true, Tag: 1},
		{Op: AtomicResponseOp, Last: true, QN: QueueAtomic, MSN: 1},
	} {
		if _, f := b.take(encode(h, pattern(AtomicResponseLen))); f == NoFault {
			t.Fatalf("an unsolicited response was accepted: %+v", h)
		}
	}
	wantBytes(t, "receive", mem, make([]byte, 8))
	if e, f := a.send(a.stream.Send(Send, 8, 0), pattern(8)); f != NoFault || e.Recv.ID != 2 {
		t.Fatalf("the true message after them: %+v, %v", e, f)
	}
}

// TestReDMArkExhaustion opens idle streams. The cost of one is bounded and small, and the
// tags of a device are bounded as a whole.
func TestReDMArkExhaustion(t *testing.T) {
	if n := reflect.TypeFor[Stream]().Size(); n > 256 {
		t.Errorf("an idle stream has %d bytes, more than 256", n)
	}
	if n := testing.AllocsPerRun(10, func() {
		NewStream(Config{Buffers: (*postedBuffers)(nil), Window: 1 << 20, Inbound: 1 << 20, Outbound: 1 << 20})
	}); n > 1 {
		t.Errorf("%v allocations for an idle stream, want at most its own", n)
	}
	table := NewTable(seeded(1), 50)
	for range 1000 {
		_, _ = table.Register(Region{}) // the table rejects excess regions, as TestRegisterRefuses checks
	}
	if table.Len() != 50 || len(table.slots) > 128 {
		t.Errorf("%d tags in %d slots, want 50 in 128", table.Len(), len(table.slots))
	}
}
