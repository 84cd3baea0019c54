package rail

import (
	"math/rand/v2"
	"testing"
)

// TestWindows sends numbered pieces over rails that lose nothing, but deliver late,
// some pieces over several rails. The receiver takes each once and in order, and never
// stores more than a window.
func TestWindows(t *testing.T) {
	for _, start := range []uint32{0, 1<<32 - 300, 65500} {
		random := rand.New(rand.NewPCG(uint64(start), 1))
		op := &operation{kind: kindMessage}
		out := outgoing{ring: new(pieces), first: start, next: start, peerNext: start}
		in := incoming{reorderBuffer: new(reorderBuffer), next: start, lastAcked: start}
		type inFlight struct {
			number uint32
			rail   int
		}
		var under []inFlight
		taken, doubles := 0, 0
		for taken < 5000 {
			switch k := random.IntN(10); {
			case k < 4 && !out.full():
				rail := random.IntN(3)
				under = append(under, inFlight{out.add(piece{op: op, rail: int8(rail), state: pieceSent}), rail})
			case k == 4 && random.IntN(20) == 0:
				if n := out.leave(random.IntN(3)); n > out.waiting {
					t.Fatalf("%d pieces are left and %d wait", n, out.waiting)
				}
			case k == 5 && out.waiting > 0:
				n, rail := out.again(), random.IntN(3)
				under = append(under, inFlight{n, rail})
				out.sent(n, rail, 0)
			case len(under) > 0:
				i := random.IntN(len(under))
				f := under[i]
				under[i] = under[len(under)-1]
				under = under[:len(under)-1]
				if in.fresh(f.number) {
					in.keep(f.number, arrival{})
				} else {
					if int32(f.number-in.next) >= window {
						t.Fatalf("piece %d arrives when %d is next: that is beyond the window", f.number, in.next)
					}
					doubles++
				}
				if out.has(f.number) && !out.at(f.number).again {
					out.settle(f.number)
				}
				for e := in.ready(); e != nil; e = in.ready() {
					in.taken(e)
					taken++
				}
			}
			if in.ackDue() || random.IntN(50) == 0 {
				out.acknowledged(in.takeAck())
				for n, ok := out.taken(); ok; n, ok = out.taken() {
					if int32(in.next-n) <= 0 {
						t.Fatalf("piece %d counts as taken when %d is next", n, in.next)
					}
					out.settle(n)
				}
			}
		}
		if doubles == 0 {
			t.Error("no piece arrived twice, so the test proves nothing")
		}
		if uint32(taken) != in.next-start || in.held < 0 || out.doubles < 0 || out.waiting < 0 {
			t.Errorf("%d pieces were taken, %d is next, %d are held, %d wait", taken, in.next, in.held, out.waiting)
		}
	}
}

func TestOldAcksIgnored(t *testing.T) {
	o := outgoing{ring: new(pieces), first: 70_000, next: 70_100, peerNext: 70_050}
	for _, v := range []struct {
		ack  uint32
		want uint32
	}{{70_050, 70_050}, {70_049, 70_050}, {0, 70_050}, {70_101, 70_050}, {70_060, 70_060}, {70_055, 70_060}, {70_100, 70_100}} {
		o.acknowledged(uint16(v.ack))
		if o.peerNext != v.want {
			t.Errorf("after an ack of %d peerNext is %d, want %d", v.ack, o.peerNext, v.want)
		}
	}
}
