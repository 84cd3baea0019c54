package hybrid

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// stage returns a policy with some peers.
func stage(r rules, peers int) (*policy, []*score) {
	p := &policy{rules: r}
	for i := range peers {
		p.add(&score{}, rdma.PeerID(i))
	}
	return p, p.known
}

// talk counts messages of a peer and applies the policy's decision: a peer that must go is
// gone at once.
func talk(p *policy, s *score, messages, length int) (v decision) {
	for range messages {
		if !p.use(s, length) {
			continue
		}
		var evicting *score
		switch v, evicting = p.consider(s); v {
		case promote:
			p.take(s)
			p.establish(s)
		case evict:
			p.give(evicting)
		case demote:
			p.give(s)
		}
	}
	return v
}

func TestPolicy(t *testing.T) {
	usual := rules{most: 2, piece: 4 << 10, short: 1, earn: 100, share: 4, margin: 2}
	for _, v := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"a quiet peer is kept", func(t *testing.T) {
			p, s := stage(usual, 1)
			for range 1000 { // less than earn in any time that counts
				talk(p, s[0], 40, 0)
				p.tick()
			}
			if s[0].holds || p.up != 0 {
				t.Errorf("it was moved: %+v", *s[0])
			}
		}},
		{"a busy peer is promoted", func(t *testing.T) {
			p, s := stage(usual, 2)
			if talk(p, s[0], 99, 0); s[0].holds {
				t.Error("it was promoted with 99 messages")
			}
			if talk(p, s[0], 1, 0); !s[0].holds || s[1].holds {
				t.Error("it was not promoted with 100 messages, or the other was")
			}
		}},
		{"long messages count more", func(t *testing.T) {
			p, s := stage(usual, 1)
			if talk(p, s[0], 6, 64<<10); !s[0].holds {
				t.Errorf("it was not promoted with 384 KB: %+v", *s[0])
			}
		}},
		{"short messages count only with CountMessages", func(t *testing.T) {
			r := usual
			r.short = 0
			p, s := stage(r, 2)
			talk(p, s[0], 10000, 4<<10-1)
			talk(p, s[1], 100, 4<<10)
			if s[0].holds || !s[1].holds {
				t.Errorf("the connections are %v %v, want false and true", s[0].holds, s[1].holds)
			}
		}},
		{"one of many peers with short messages is not promoted", func(t *testing.T) {
			p, s := stage(usual, 5)
			p.most = 16
			for range 1000 {
				for i := range s {
					talk(p, s[i], 1, 100)
				}
			}
			if p.open != 0 {
				t.Errorf("%d of 5 peers that are equally busy have a connection; none should", p.open)
			}
			if talk(p, s[0], 13, 32<<10); !s[0].holds {
				t.Errorf("it was not promoted with 13 messages of 32 KB: %+v", *s[0])
			}
		}},
		{"a few peers with short messages are promoted", func(t *testing.T) {
			p, s := stage(usual, 20)
			p.most = 16
			for range 300 {
				for i := range s[:3] {
					talk(p, s[i], 1, 100)
				}
			}
			if p.open != 3 {
				t.Errorf("%d of 3 busy peers have a connection", p.open)
			}
		}},
		{"an equal peer does not displace", func(t *testing.T) {
			p, s := stage(usual, 3)
			for range 200 {
				for i := range s {
					talk(p, s[i], 150, 0)
				}
				p.tick()
			}
			if !s[0].holds || !s[1].holds || s[2].holds || p.down != 0 {
				t.Errorf("it was moved anyway: %+v", p.tally)
			}
			if p.refused == 0 || p.refused > 20 {
				t.Errorf("in 200 ticks it was refused %d times; it should ask less and less often", p.refused)
			}
		}},
		{"a busier peer displaces the least busy", func(t *testing.T) {
			p, s := stage(usual, 3)
			talk(p, s[0], 150, 0)
			talk(p, s[1], 100, 0)
			for range 20 {
				talk(p, s[0], 150, 0)
				talk(p, s[2], 400, 0)
				p.tick()
			}
			if !s[0].holds || s[1].holds || !s[2].holds || p.down != 1 {
				t.Errorf("the connections are %v %v %v, %+v", s[0].holds, s[1].holds, s[2].holds, p.tally)
			}
		}},
		{"only one is evicted at a time", func(t *testing.T) {
			p, s := stage(usual, 3)
			talk(p, s[0], 100, 0)
			talk(p, s[1], 100, 0)
			s[2].points = 1000
			if v, evicting := p.consider(s[2]); v != evict || evicting != s[0] {
				t.Fatalf("decision %d, and %+v is evicted", v, evicting)
			}
			p.tick()
			if v, _ := p.consider(s[2]); v != keep || p.down != 1 {
				t.Errorf("while one is being evicted, the decision is %d, and %d are evicted", v, p.down)
			}
		}},
		{"an offer is accepted while there is room", func(t *testing.T) {
			p, s := stage(usual, 3)
			for i, want := range []decision{promote, promote, keep} {
				v, _ := p.considerOffer(s[i])
				if v != want {
					t.Errorf("offer %d: decision %d, want %d", i, v, want)
				}
				if v == promote {
					p.take(s[i])
				}
				s[i].points = 100
			}
		}},
		{"a failed peer rests longer each time", func(t *testing.T) {
			p, s := stage(usual, 1)
			rests := 0
			for range 10 {
				s[0].points = 1 << 20
				p.take(s[0])
				p.give(s[0])
				p.fail(s[0])
				for ; s[0].rest > 0; rests++ {
					p.tick()
				}
			}
			if rests < 100 || rests > 1000 {
				t.Errorf("ten failures made it rest for %d ticks", rests)
			}
		}},
	} {
		t.Run(v.name, v.run)
	}
}

// FuzzPolicy makes peers send, refuse and fail in any order.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0, 0, 0, 7, 7, 255, 13, 1, 1, 1, 64, 65, 66})
	f.Fuzz(func(t *testing.T, script []byte) {
		const peers = 6
		p, s := stage(rules{most: 2, piece: 4 << 10, short: 1, earn: 8, share: 4, margin: 2}, peers)
		for _, b := range script {
			one := s[b%peers]
			switch b / peers % 6 {
			case 0, 1:
				var before uint32
				if least, _ := p.least(); least != nil {
					before = least.points
				}
				downs := p.down
				talk(p, one, 5, int(b)*200)
				if p.down > downs && one.points < before*2 {
					t.Fatalf("a peer with %d points displaced one with %d", one.points, before)
				}
			case 2:
				p.tick()
			case 3:
				p.give(one)
			case 4:
				p.give(one)
				p.fail(one)
			case 5:
				if v, evicting := p.considerOffer(one); v == promote {
					p.take(one)
				} else if evicting != nil {
					p.give(evicting)
				}
			}
			holds := 0
			for _, other := range s {
				if other.holds {
					holds++
				} else if other.evicting {
					t.Fatalf("a peer without a connection is to make room: %+v", *other)
				}
			}
			if holds != p.open || holds > p.most {
				t.Fatalf("%d peers have a connection, the policy counts %d, %d may have one", holds, p.open, p.most)
			}
		}
		// In any case, a peer that is far busier than all others gets a connection.
		busiest := s[0]
		for range 300 {
			busiest.points = 1 << 20
			talk(p, busiest, 1, 0)
			p.tick()
		}
		if !busiest.holds {
			t.Fatalf("the busiest peer has no connection: %+v", *busiest)
		}
	})
}
