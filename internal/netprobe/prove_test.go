package netprobe

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// Proofs between two provers on one host: 127.0.0.1 and 127.0.0.2 are interfaces that
// reach each other.

func loopbackCandidate(name, prefix string, kind Kind) Candidate {
	return Candidate{Interface: Interface{Name: name, Up: true}, Address: netip.MustParsePrefix(prefix), Kind: kind, Possible: true, Taken: kind == Ordinary}
}

func newTestProver(t *testing.T, host string, list []Candidate) *Prover {
	t.Helper()
	p, err := NewProver(host, list, Ports{})
	if err != nil {
		t.Skipf("the loopback interface lacks a part of 127.0.0.0/8: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestProve(t *testing.T) {
	one := []Candidate{loopbackCandidate("eth0", "127.0.0.1/24", Ordinary), loopbackCandidate("eth1", "127.0.1.1/24", Ordinary)}
	two := []Candidate{loopbackCandidate("en0", "127.0.0.2/24", Ordinary), loopbackCandidate("en1", "127.0.1.2/24", Ordinary)}
	for _, v := range []struct {
		name       string
		keyA, keyB string
		limit      time.Duration
		rails      []string
	}{
		{"one key", "the key", "the key", 20 * time.Second, []string{"eth0", "eth1"}},
		{"two keys", "the key", "another", 200 * time.Millisecond, nil},
	} {
		t.Run(v.name, func(t *testing.T) {
			a, b := newTestProver(t, "alpha", one), newTestProver(t, "beta", two)
			a.Answer([]byte(v.keyA))
			b.Answer([]byte(v.keyB))
			ctx, cancel := context.WithTimeout(t.Context(), v.limit)
			defer cancel()
			proofs, err := a.Prove(ctx, b.Card())
			if err != nil {
				t.Fatal(err)
			}
			text, err := a.Report(b.Card(), proofs)
			if err != nil {
				t.Fatal(err)
			}
			var got HostReport
			if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got.Mine, v.rails) || got.Next != "beta" {
				t.Errorf("the report is %+v, %v, want %q", got, err, v.rails)
			}
		})
	}
}

// TestProveWithoutCarrier: interfaces without a carrier, as far as the system has reported, are
// rails if they respond and no others do. Nobody waits for them if others respond.
func TestProveWithoutCarrier(t *testing.T) {
	list, err := Choose([]Interface{
		face("eth0", "127.0.0.1/24").with(func(i *Interface) { i.Running = false }),
		face("eth1", "127.0.1.1/24"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		name  string
		mine  []Candidate
		rails []string
	}{
		{"alone", list[:1], []string{"eth0"}},
		{"beside another", list, []string{"eth1"}},
	} {
		a := newTestProver(t, "alpha", v.mine)
		b := newTestProver(t, "beta", []Candidate{loopbackCandidate("en0", "127.0.0.2/24", Ordinary), loopbackCandidate("en1", "127.0.1.2/24", Ordinary)})
		a.Answer([]byte("the key"))
		b.Answer([]byte("the key"))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		proofs, err := a.Prove(ctx, b.Card())
		if err != nil {
			t.Fatal(err)
		}
		text, err := a.Report(b.Card(), proofs)
		if err != nil {
			t.Fatal(err)
		}
		var got HostReport
		if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got.Mine, v.rails) {
			t.Errorf("%s: the report is %+v, %v, want %q", v.name, got, err, v.rails)
		}
	}
}

// TestNothingToProbe: a host without an interface is reported at once, with what it has.
func TestNothingToProbe(t *testing.T) {
	a := newTestProver(t, "alpha", nil)
	b := newTestProver(t, "beta", []Candidate{loopbackCandidate("en0", "127.0.0.2/24", Ordinary)})
	var reports [][]byte
	for _, p := range []*Prover{a, b} {
		p.Answer([]byte("the key"))
		other := b
		if p == b {
			other = a
		}
		began := time.Now()
		proofs, err := p.Prove(t.Context(), other.Card())
		if err != nil || len(proofs) > 0 || time.Since(began) > 5*time.Second {
			t.Fatalf("proofs %v, %v after %v", proofs, err, time.Since(began))
		}
		p.known, p.ready = describe(&p.card, []Candidate{{Interface: face("eth0", "10.1.0.2/24").with(func(i *Interface) { i.Running = p == b }), Address: netip.MustParsePrefix("10.1.0.2/24")}})
		report, err := p.Report(other.Card(), proofs)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, report)
	}
	_, err := Decide(reports)
	for _, want := range []string{"no interface of alpha reaches beta", "alpha has eth0 (10.1.0.2/24), without a carrier", "beta has eth0 (10.1.0.2/24), which came up during the probes", "give alpha an interface"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "firewall") {
			t.Errorf("the error must contain %q and no firewall: %v", want, err)
		}
	}
}

// TestProveIgnoresOwnBridge: both hosts have the same address on a bridge, so a host
// that probes it reaches itself.
func TestProveIgnoresOwnBridge(t *testing.T) {
	bridge := loopbackCandidate("docker0", "127.0.2.1/16", Inward)
	a := newTestProver(t, "alpha", []Candidate{loopbackCandidate("eth0", "127.0.0.1/24", Ordinary), bridge})
	b := newTestProver(t, "beta", []Candidate{loopbackCandidate("eth0", "127.0.0.2/24", Ordinary)})
	// b has the bridge too, and datagrams to it reach a's socket there.
	b.card.Interfaces = append(b.card.Interfaces, a.card.Interfaces[1])
	a.Answer([]byte("the key"))
	b.Answer([]byte("the key"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := a.Prove(ctx, b.Card()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // real sockets: time for a wrong answer
	for _, f := range a.proofs() {
		if f.Theirs == 1 {
			t.Errorf("the bridge that leads to the host itself has responded: %+v", f)
		}
	}
}

func TestGrades(t *testing.T) {
	entry := func(name, network string, k Kind) CardEntry { return CardEntry{Name: name, Network: network, Kind: k} }
	for _, v := range []struct {
		name         string
		ours, theirs []CardEntry
		proofs       []Proof
		mine         []string
	}{
		{"two cables", []CardEntry{entry("a", "10.0.0.0/24", 0), entry("b", "10.1.0.0/24", 0)}, []CardEntry{entry("a", "10.0.0.0/24", 0), entry("b", "10.1.0.0/24", 0)},
			[]Proof{{0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 1}}, []string{"a", "b"}},
		{"one leads nowhere", []CardEntry{entry("a", "10.0.0.0/24", 0), entry("b", "10.1.0.0/24", 0)}, []CardEntry{entry("a", "10.0.0.0/24", 0), entry("b", "10.1.0.0/24", 0)},
			[]Proof{{1, 1, 1}}, []string{"b"}},
		{"a bridge is not needed", []CardEntry{entry("a", "10.0.0.0/24", 0), entry("br", "10.1.0.0/24", Inward)}, []CardEntry{entry("a", "10.0.0.0/24", 0), entry("br", "10.1.0.0/24", Inward)},
			[]Proof{{0, 0, 1}, {1, 1, 1}}, []string{"a"}},
		{"a bridge is all there is", []CardEntry{entry("a", "10.0.0.0/24", 0), entry("br", "10.1.0.0/24", Inward)}, []CardEntry{entry("br", "10.1.0.0/24", Inward)},
			[]Proof{{1, 0, 1}}, []string{"br"}},
		{"routed", []CardEntry{entry("a", "10.0.0.7/32", 0)}, []CardEntry{entry("a", "10.0.0.8/32", 0)}, []Proof{{0, 0, 1}}, []string{"a"}},
		{"across networks by chance", []CardEntry{entry("a", "10.0.0.0/24", 0), entry("tun", "10.8.0.0/24", Tunnel)}, []CardEntry{entry("tun", "10.9.0.0/24", Tunnel)},
			[]Proof{{0, 0, 1}, {1, 0, 1}}, []string{"a"}},
		{"nothing", []CardEntry{entry("a", "10.0.0.0/24", 0)}, []CardEntry{entry("a", "10.0.0.0/24", 0)}, nil, nil},
	} {
		p := &Prover{card: Card{Host: "alpha", Interfaces: v.ours}}
		next, err := json.Marshal(&Card{Host: "beta", ID: strings.Repeat("00", 16), Interfaces: v.theirs})
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.Report(next, v.proofs)
		if err != nil {
			t.Fatal(err)
		}
		var got HostReport
		if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got.Mine, v.mine) {
			t.Errorf("%s: rails are %q, %v; want %q", v.name, got.Mine, err, v.mine)
		}
	}
}

func TestDecide(t *testing.T) {
	report := func(v HostReport) []byte {
		text, err := json.Marshal(&v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	a := report(HostReport{Host: "a", Next: "b", Names: []string{"eth0", "eth1"}, Mine: []string{"eth0", "eth1"}, Theirs: []string{"en0", "en1"}})
	b := report(HostReport{Host: "b", Next: "c", Names: []string{"en0", "en1"}, Mine: []string{"en0"}, Theirs: []string{"eth0"}})
	c := report(HostReport{Host: "c", Next: "a", Names: []string{"eth0"}, Mine: []string{"eth0"}, Theirs: []string{"eth0"}})
	list, err := Decide([][]byte{a, b, c})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"eth0", "eth1"}, {"en0", "en1"}, {"eth0"}} {
		if !slices.Equal(list[i].Rails, want) || !list[i].Several {
			t.Errorf("host %d has %+v, want %q and several", i, list[i], want)
		}
	}
	lost := report(HostReport{Host: "d", Next: "a", Names: []string{"eth0"}})
	if _, err := Decide([][]byte{a, b, c, lost}); err == nil || !strings.Contains(err.Error(), "no interface of d reaches a") {
		t.Errorf("a host that reaches nobody: %v", err)
	}
}

func TestApply(t *testing.T) {
	list := []Candidate{
		{Interface: Interface{Name: "lo"}, Why: "it leads to this host alone"},
		loopbackCandidate("eth0", "127.0.0.1/24", Ordinary),
		loopbackCandidate("eth1", "127.0.1.1/24", Ordinary),
		loopbackCandidate("br0", "127.0.2.1/24", Inward),
	}
	d := Decision{Rails: []string{"eth0", "eth1"}, Peers: "beta answered"}
	if d.Apply(list) {
		t.Error("the expected selection is reported as different")
	}
	d = Decision{Rails: []string{"br0"}, Peers: "beta answered"}
	if !d.Apply(list) {
		t.Error("a bridge instead of two cables is not reported as different")
	}
	if list[0].Taken || list[1].Taken || !list[3].Taken || list[1].Why != "nobody answers over it" {
		t.Errorf("the interfaces are %+v", list)
	}
}
