package p2p

// Matching compared with a simple model: two lists that are searched from the front.

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

// eagerPacket returns an eager packet like emitEager.
func eagerPacket(seq uint32, ctx uint32, src, tag int32, total int, data []byte) []byte {
	pkt := make([]byte, headLen, headLen+len(data))
	put64(pkt[offKind:], uint64(kindEager)|uint64(seq)<<32)
	put64(pkt[offContext:], uint64(ctx)|uint64(uint32(src))<<32)
	put64(pkt[offTag:], uint64(uint32(tag)))
	put64(pkt[offTotal:], uint64(total))
	return append(pkt, data...)
}

// receiver is a machine whose peers exist only as packets. Message number n has n as its
// data.
type receiver struct {
	m     *Machine
	links []*Link
	seq   []uint32
	sent  uint64
}

func newReceiver(peers int) *receiver {
	r := &receiver{m: New(Config{Credit: 1 << 40}, newMemory(0, 0)), seq: make([]uint32, peers)}
	attr := testAttr(0)
	for p := range peers {
		l := &Link{Rank: p, Attr: &attr}
		r.m.SetUp(l)
		r.links = append(r.links, l)
	}
	return r
}

// arrive delivers a message and returns its number.
func (r *receiver) arrive(ctx uint32, src, tag int32) uint64 {
	r.sent++
	var data [8]byte
	put64(data[:], r.sent)
	r.m.HandlePacket(r.links[src], eagerPacket(r.seq[src], ctx, src, tag, 8, data[:]))
	r.seq[src]++
	return r.sent
}

func (r *receiver) post(ctx uint32, src, tag int32) *Xfer {
	x := r.m.New()
	x.Ctx, x.Source, x.Tag, x.Buf = ctx, src, tag, make([]byte, 8)
	r.m.Recv(x)
	return x
}

// number returns the message of a receive, 0 for none yet.
func number(x *Xfer) uint64 {
	if !x.Done() || x.Cancelled {
		return 0
	}
	return get64(x.Buf)
}

type modelMsg struct {
	pattern
	number uint64
}

func (p pattern) accepts(q pattern) bool {
	return p.ctx == q.ctx && (p.src == AnySource || p.src == q.src) && (p.tag == AnyTag || p.tag == q.tag)
}

// model is MPI's matching in two lists.
type model struct {
	posted []*Xfer // still waiting, with their patterns in wants
	wants  map[*Xfer]pattern
	msgs   []modelMsg
}

func (md *model) look(p pattern) int {
	for i, g := range md.msgs {
		if p.accepts(g.pattern) {
			return i
		}
	}
	return -1
}

func (md *model) takeMsg(i int) uint64 {
	n := md.msgs[i].number
	md.msgs = append(md.msgs[:i:i], md.msgs[i+1:]...)
	return n
}

func (md *model) takePosted(p pattern) *Xfer {
	for i, x := range md.posted {
		if md.wants[x].accepts(p) {
			md.posted = append(md.posted[:i:i], md.posted[i+1:]...)
			return x
		}
	}
	return nil
}

func TestMatchingAgainstModel(t *testing.T) {
	steps := 6000
	for seed := range int64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewSource(seed))
			r, md := newReceiver(3), &model{wants: map[*Xfer]pattern{}}
			ctxs, tags := 1+rng.Intn(2), 1+rng.Intn(200)
			wild := rng.Intn(3) // how frequent wildcards are
			pick := func() pattern {
				p := pattern{uint32(rng.Intn(ctxs)), int32(rng.Intn(3)), int32(rng.Intn(tags))}
				if rng.Intn(6) < wild {
					p.src = AnySource
				}
				if rng.Intn(6) < wild {
					p.tag = AnyTag
				}
				return p
			}
			want := func(x *Xfer, n uint64, step int, why string) {
				t.Helper()
				if got := number(x); got != n {
					t.Fatalf("step %d: %s: got message %d, want %d", step, why, got, n)
				}
			}
			for step := range steps {
				switch op := rng.Intn(20); {
				case op < 8: // a message arrives
					p := pattern{uint32(rng.Intn(ctxs)), int32(rng.Intn(3)), int32(rng.Intn(tags))}
					n := r.arrive(p.ctx, p.src, p.tag)
					if x := md.takePosted(p); x != nil {
						want(x, n, step, "the receive that was posted first among those that fit")
						r.m.Free(x)
					} else {
						md.msgs = append(md.msgs, modelMsg{p, n})
					}
				case op < 15: // a receive is posted
					p := pick()
					x := r.post(p.ctx, p.src, p.tag)
					if i := md.look(p); i >= 0 {
						want(x, md.takeMsg(i), step, "the first message that fits a receive")
						r.m.Free(x)
					} else {
						want(x, 0, step, "no message fits")
						md.posted, md.wants[x] = append(md.posted, x), p
					}
				case op < 16: // a receive is cancelled
					if len(md.posted) > 0 {
						i := rng.Intn(len(md.posted))
						x := md.posted[i]
						if !cancel(r.m, x) || !x.Cancelled || !x.Done() {
							t.Fatalf("step %d: a receive that waits can be cancelled", step)
						}
						md.posted = append(md.posted[:i:i], md.posted[i+1:]...)
						r.m.Free(x)
					}
				case op < 18: // probe
					p := pick()
					g, i := r.m.Look(p.ctx, p.src, p.tag), md.look(p)
					if (g == nil) != (i < 0) || (g != nil && get64(g.data) != md.msgs[i].number) {
						t.Fatalf("step %d: probe for %v found %v, the model message %d", step, p, g, i)
					}
				default: // matched probe and receive
					p := pick()
					g, i := r.m.Take(p.ctx, p.src, p.tag), md.look(p)
					if (g == nil) != (i < 0) {
						t.Fatalf("step %d: mprobe for %v found %v, the model message %d", step, p, g, i)
					}
					if g != nil {
						x := r.m.New()
						x.Buf = make([]byte, 8)
						r.m.Claim(x, g)
						want(x, md.takeMsg(i), step, "the first message that fits a matched probe")
						r.m.Free(x)
					}
				}
				if r.m.CountUnexpected() != len(md.msgs) {
					t.Fatalf("step %d: %d messages wait, want %d", step, r.m.CountUnexpected(), len(md.msgs))
				}
			}
		})
	}
}

// workload is a way to fill a receiver with messages and empty it again.
type workload struct {
	name  string
	tag   func(i int) int32         // of message i
	want  func(i, n int) (s, t int) // pattern of receive i
	got   func(i, n int) int        // message that receive i gets
	probe bool                      // look before every receive
}

var workloads = []workload{
	{name: "same key",
		tag: func(int) int32 { return 7 }, want: func(int, int) (int, int) { return 0, 7 }, got: func(i, _ int) int { return i }},
	{name: "distinct tags",
		tag: func(i int) int32 { return int32(i) }, want: func(i, _ int) (int, int) { return 0, i }, got: func(i, _ int) int { return i }},
	{name: "distinct tags in reverse",
		tag: func(i int) int32 { return int32(i) }, want: func(i, n int) (int, int) { return 0, n - 1 - i }, got: func(i, n int) int { return n - 1 - i }},
	{name: "any tag",
		tag: func(i int) int32 { return int32(i) }, want: func(int, int) (int, int) { return 0, AnyTag }, got: func(i, _ int) int { return i }},
	{name: "any source in reverse",
		tag: func(i int) int32 { return int32(i) }, want: func(i, n int) (int, int) { return AnySource, n - 1 - i }, got: func(i, n int) int { return n - 1 - i }},
	{name: "any source, any tag, with probes", probe: true,
		tag: func(i int) int32 { return int32(i) }, want: func(int, int) (int, int) { return AnySource, AnyTag }, got: func(i, _ int) int { return i }},
	{name: "probes in reverse", probe: true,
		tag: func(i int) int32 { return int32(i) }, want: func(i, n int) (int, int) { return 0, n - 1 - i }, got: func(i, n int) int { return n - 1 - i }},
}

// run delivers n messages and then receives them; it returns the time of both. check, if not
// nil, is called with each result.
func (c workload) run(r *receiver, n int, check func(i int, got, want uint64)) time.Duration {
	first := r.sent
	start := time.Now()
	for i := range n {
		r.arrive(0, 0, c.tag(i))
	}
	for i := range n {
		s, tag := c.want(i, n)
		if c.probe && r.m.Look(0, int32(s), int32(tag)) == nil {
			check(i, 0, 1)
		}
		x := r.post(0, int32(s), int32(tag))
		check(i, number(x), first+1+uint64(c.got(i, n)))
		r.m.Free(x)
	}
	return time.Since(start)
}

func TestHundredThousandUnexpected(t *testing.T) {
	const many, few = 100_000, 100
	for _, c := range workloads {
		t.Run(c.name, func(t *testing.T) {
			check := func(i int, got, want uint64) {
				if got != want {
					t.Fatalf("receive %d got message %d, want %d", i, got, want)
				}
			}
			r := newReceiver(1)
			c.run(r, many, check)
			if r.m.CountUnexpected() != 0 {
				t.Fatalf("%d messages are left", r.m.CountUnexpected())
			}
			// A linear search would take a thousand times as long for each message.
			// A factor of 30 leaves room for cold caches and a busy machine; the best
			// of several tries counts.
			best := 0.0
			for range 5 {
				small := time.Duration(1 << 62)
				for range 20 {
					small = min(small, c.run(r, few, check))
				}
				ratio := float64(c.run(r, many, check)) / many / (float64(small) / few)
				if best == 0 || ratio < best {
					best = ratio
				}
				if best < 10 {
					break
				}
			}
			t.Logf("a message among %d costs %.1f times a message among %d", many, best, few)
			if best > 30 {
				t.Fatalf("a message among %d costs %.1f times a message among %d: the cost must not grow with their number", many, best, few)
			}
		})
	}
}

// A program that never reuses a tag must not make the table grow.
func TestTableReclaimsEntries(t *testing.T) {
	r := newReceiver(1)
	for i := range 200_000 {
		x := r.post(0, 0, int32(i))
		r.arrive(0, 0, int32(i))
		if number(x) == 0 {
			t.Fatalf("receive %d got nothing", i)
		}
		r.m.Free(x)
	}
	if got := len(r.m.match.buckets); got > 2*firstBuckets {
		t.Fatalf("the table has %d buckets after 200,000 tags of which one was in use at a time, want at most %d", got, 2*firstBuckets)
	}
}

func BenchmarkUnexpected(b *testing.B) {
	for _, c := range workloads {
		for _, n := range []int{100, 100_000} {
			b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) {
				r := newReceiver(1)
				var total time.Duration
				rounds := 0
				for done := 0; done < b.N; done += n {
					total += c.run(r, n, func(i int, got, want uint64) {
						if got != want {
							b.Fatalf("receive %d got message %d, want %d", i, got, want)
						}
					})
					rounds++
				}
				b.ReportMetric(float64(total)/float64(rounds*n), "ns/message")
			})
		}
	}
}
