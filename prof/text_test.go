package prof

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// job returns the counters of the ranks of a fictitious job.
func job() []*Counters {
	var ranks []*Counters
	for r := range 4 {
		c := &Counters{Rank: r, Host: "a", Devices: []string{"shm", "dgram"}}
		n := uint64(r + 1)
		for name, v := range map[Name]uint64{
			TimeRunning: 12_340_000_000, TimeWaiting: n * 1_000_000_000,
			TimeLongestGap: n * 3_000_000, WaitStalls: n / 2, WaitParksLate: n / 4, WaitParksBlocked: 2 * n,
			MessagesSent: 1000 * n, MessagesReceived: 2500, MessagesUnexpected: 10 * n,
			CollectivesByMessages: 12, CollectivesShared: 1200,
			BytesSent: n << 20, BytesReceived: 5 << 19, MessagesNoCredit: 3,
			OffersMade: 100, OffersUsed: 90, OffersWithheld: 7,
			PeersTalkedTo: 3, "peers.rings": n % 3, "connections.rc": 2, "connections.made": 4, "connections.closed": n / 2,
			"connections.sockets": 1, "receive.low-water": n / 3,
			"datagrams.sent": 2000, "datagrams.retransmitted": 2 * n, "datagrams.duplicate": 1, "datagrams.refused": 0, "segments.retransmitted": n,
			"rail-bytes.eth0": 300 << 20, "rail-bytes.eth1": 200 << 20, "rails.left": n / 4, "rails.back": n / 4,
			"memory.receive": 640 << 10, "memory.rings": (n % 3) << 19, MemoryLinks: n << 10, MemoryUnexpected: n << 16,
			MemoryRegistered: 64 << 20, MemoryKernel: 1 << 20, "memory.spare": 100 << 10,
		} {
			c.Add(name, v)
		}
		if r%2 == 0 {
			c.Add(Hosts, 1)
		}
		c.AddSizes("eager", 0, 10*n, 0)
		c.AddSizes("eager", 4, 900*n, 9000*n)
		c.AddSizes("rndv_get", 21, 90*n, 90*n<<20)
		for to := range 4 {
			if to != r {
				c.Peers = append(c.Peers, Pair{From: r, To: to, Messages: 10, Bytes: uint64(to) << (10 + r)})
			}
		}
		ranks = append(ranks, c)
	}
	return ranks
}

// calling returns the same ranks with profiles of calls. Only rank 2 calls Recv, and ranks 0 and
// 2 start receives.
func calling() []*Counters {
	ranks := job()
	for r, c := range ranks {
		n := uint64(r + 1)
		site := CallSite{Routine: "Send", Kind: "send", Site: "heat/heat.go:20", Function: "heat.(*grid).exchange", Longest: n * 70_000,
			Shortest: 8 << r, Largest: 4096, Sizes: []ClassCount{{4 + r, 10}, {13, 990 * n}}}
		site.Set(r, 1000*n, n*200_000_000, 1000*n, n<<22)
		c.Sites = append(c.Sites, site)
		if r == 2 {
			recv := CallSite{Routine: "Recv", Kind: "receive", Function: "main", Site: "a.c:7", Longest: 5_000_000}
			recv.Set(r, 5, 7_000_000, 0, 0)
			c.Sites = append(c.Sites, recv)
		}
		if r%2 == 0 {
			irecv := CallSite{Routine: "Irecv", Kind: "receive", Function: "heat.(*grid).start", Site: "heat/heat.go:31", Longest: 9_000,
				Overlap: Overlap{Operations: 100, Early: 90 + n, Time: 400_000_000, Hidden: 350_000_000, HiddenEarly: 340_000_000, Waited: n * 10_000_000}}
			irecv.Set(r, 120, 1_000_000, 0, 0)
			c.Sites = append(c.Sites, irecv)
		}
		c.Waits = []Wait{{Rank: r, For: 0, Calls: n, Nanos: n * 1_500_000}}
		for name, v := range map[Name]uint64{
			TimeInCalls: n * 250_000_000, BuffersSent: 1000 * n, BuffersReused: 900 * n, BuffersMostUses: 450 + n, BuffersMostBytes: 4096,
			BuffersDirect: 30 * n, BuffersCopied: 10, BuffersKnown: 20, BuffersFrequent: 15, RegistrationsHit: 90, RegistrationsMissed: 10, RegistrationsEvicted: n / 4,
		} {
			c.Add(name, v)
		}
	}
	return ranks
}

// whole returns the summary of some ranks.
func whole(ranks []*Counters) *Summary {
	s := Summarize(ranks[0])
	for _, c := range ranks[1:] {
		s.Merge(Summarize(c))
	}
	return s
}

func TestText(t *testing.T) {
	every := &Counters{Rank: 0, Devices: []string{"shm"}}
	every.Add(Hosts, 1)
	for class := range 40 { // more classes than there are rows
		every.AddSizes("eager", class, 1, 0)
		every.Add(MessagesSent, 1)
	}
	for _, c := range []struct {
		name  string
		ranks []*Counters
	}{
		{"job", job()},
		{"calls", calling()},
		{"quiet", []*Counters{{Rank: 0}}},
		{"lengths", []*Counters{every}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := whole(c.ranks)
			got, file := s.Screen()+"\n--- full\n"+s.Text(), filepath.Join("testdata", c.name+".txt")
			if n := strings.Count(s.Screen(), "\n"); n > 24 {
				t.Errorf("the screen has %d lines", n)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the text has changed (go test -update writes it anew):\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestFormatNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{size(0), "0 B"}, {size(1023), "1023 B"}, {size(1024), "1 KB"}, {size(1536), "1.50 KB"}, {size(99 << 10), "99 KB"},
		{size(1<<20 - 1), "1 MB"}, {size(123 << 20), "123 MB"}, {size(1 << 63), "8 EB"},
		{groupDigits(0), "0"}, {groupDigits(999), "999"}, {groupDigits(1000), "1 000"}, {groupDigits(1234567), "1 234 567"},
		{percent(0, 0), "0 %"}, {percent(1, 10000), "<0.1 %"}, {percent(1, 30), "3.3 %"}, {percent(1, 1), "100 %"},
		{duration(1_234_567), "1.23ms"}, {duration(12_345_678_901), "12.35s"}, {duration(3_601_000_000_000), "1h0m1s"},
		{plural(1, "host"), "1 host"}, {plural(2, "host"), "2 hosts"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestDelays(t *testing.T) {
	c := &Counters{}
	c.Add("datagrams.sent", 9)
	c.Add("datagrams.dropped", 1200)
	c.Add("datagrams.timeouts", 2)
	if text := Summarize(c).Text(); !strings.Contains(text, "delays         1 200 datagrams dropped by the kernel, 2 timeouts\n") {
		t.Errorf("the profile is\n%s", text)
	}
}
