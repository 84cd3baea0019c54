package netprobe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// From proofs to rails. Each host reports which of its interfaces got a response (Report).
// One rank combines the reports of all hosts (Decide). Each host applies the decision
// about it (Apply).

// grade rates a pair of interfaces that has responded; lower is better. Interfaces that
// are not ordinary come last: a bridge may lead to other hosts, and a tunnel to some.
// Among equals, interfaces of one network are two ends of a cable, while a response
// across networks may have taken any route.
func grade(mine, theirs *CardEntry, expected bool) int {
	g := 3 * int(max(mine.Kind, theirs.Kind))
	switch {
	case mine.Network == theirs.Network:
		return g
	case expected:
		return g + 1
	}
	return g + 2
}

// expectedPairs returns the pairs of ordinary interfaces that belong together: those of
// one network, or if there is none, in order.
func expectedPairs(ours, theirs []CardEntry) (pairs []pair) {
	taken := make([]bool, len(theirs))
	alone := func(i int) bool {
		return !slices.ContainsFunc(pairs, func(w pair) bool { return w.mine == i })
	}
	for _, same := range []bool{true, false} {
		for i := range ours {
			for j := range theirs {
				if alone(i) && !taken[j] && ours[i].Kind == Ordinary && theirs[j].Kind == Ordinary && (!same || ours[i].Network == theirs[j].Network) {
					taken[j] = true
					pairs = append(pairs, pair{i, j})
				}
			}
		}
		if same && len(pairs) > 0 {
			break // the others lead elsewhere, if anywhere
		}
	}
	return pairs
}

// HostReport is what a host has found out about its interfaces and those of the host it
// has probed.
type HostReport struct {
	Host, Next   string
	Mine, Theirs []string      // interfaces that are ends of rails
	Names        []string      // of all interfaces that were probed from
	Trip         time.Duration // round-trip time of the first
	Known        string        // about its interfaces, if nothing has responded
	Ready        bool          // one of them is up and has an address and a carrier
}

// Report rates the proofs: the pairs of the best grade are rails.
func (p *Prover) Report(next []byte, proofs []Proof) ([]byte, error) {
	theirs, _, err := parseCard(next)
	if err != nil {
		return nil, err
	}
	v := HostReport{Host: p.card.Host, Next: theirs.Host, Known: p.known, Ready: p.ready}
	for i := range p.card.Interfaces {
		v.Names = append(v.Names, p.card.Interfaces[i].Name)
	}
	expected := expectedPairs(p.card.Interfaces, theirs.Interfaces)
	best := -1
	gradeOf := func(f Proof) int {
		return grade(&p.card.Interfaces[f.Mine], &theirs.Interfaces[f.Theirs], slices.Contains(expected, pair{f.Mine, f.Theirs}))
	}
	proofs = slices.DeleteFunc(slices.Clone(proofs), func(f Proof) bool { return f.Theirs >= len(theirs.Interfaces) })
	for _, f := range proofs {
		if g := gradeOf(f); best < 0 || g < best {
			best = g
		}
	}
	for _, f := range proofs {
		if gradeOf(f) != best || best%3 == 2 && len(v.Mine) > 0 {
			continue
		}
		if len(v.Mine) == 0 {
			v.Trip = f.Trip
		}
		v.Mine = append(v.Mine, p.card.Interfaces[f.Mine].Name)
		v.Theirs = append(v.Theirs, theirs.Interfaces[f.Theirs].Name)
	}
	return json.Marshal(&v)
}

// Decision is the decision about a host.
type Decision struct {
	Rails   []string // its interfaces
	Several bool     // some host has more than one rail, so all use the protocol of rails
	Peers   string   // who has responded, for people
	Hosts   int
}

// Decide combines the reports of all hosts, in the order of the ring. An interface is a
// rail if the next host has responded over it, or the previous one over its own. A host
// that reaches nobody is an error.
func Decide(reports [][]byte) ([]Decision, error) {
	list := make([]HostReport, len(reports))
	for i, text := range reports {
		if err := json.Unmarshal(text, &list[i]); err != nil {
			return nil, fmt.Errorf("netprobe: what a host found out about its interfaces is not readable: %w; do all hosts run the same version?", err)
		}
	}
	out := make([]Decision, len(list))
	several := false
	for i := range list {
		v, before := &list[i], &list[(i+len(list)-1)%len(list)]
		if len(v.Mine) == 0 {
			return nil, unreachedError(v, &list[(i+1)%len(list)])
		}
		d := &out[i]
		d.Hosts = len(list)
		d.Peers = fmt.Sprintf("%s answered in %v", v.Next, v.Trip.Round(time.Microsecond))
		for _, name := range slices.Concat(v.Mine, before.Theirs) {
			if !slices.Contains(d.Rails, name) {
				d.Rails = append(d.Rails, name)
			}
		}
		several = several || len(d.Rails) > 1
	}
	for i := range out {
		out[i].Several = several
	}
	return out, nil
}

// unreachedError returns the error for a host that does not reach the next one, with what is known
// about the interfaces of both.
func unreachedError(v, next *HostReport) error {
	advice := "see whether a firewall drops UDP between them, or name interfaces that lead there in MUSTER_INTERFACE"
	var known []string
	for _, h := range []*HostReport{v, next} {
		if h.Known == "" {
			continue
		}
		known = append(known, h.Host+" has "+h.Known)
		if !h.Ready {
			advice = "give " + h.Host + " an interface that leads to the other hosts, with an address and a carrier"
		}
	}
	return fmt.Errorf("netprobe: no interface of %s reaches %s: a hello over UDP from %s got no answer; %s; %s",
		v.Host, v.Next, cmp.Or(strings.Join(v.Names, ", "), "no interface"), cmp.Or(strings.Join(known, ", and "), "nothing more is known"), advice)
}

// describe lists the interfaces that may lead to other hosts, as they are after the probes. It
// reports whether one of them is ready.
func describe(before *Card, now []Candidate) (known string, ready bool) {
	var words []string
	for i := range now {
		c := &now[i]
		if c.Loopback {
			continue
		}
		probed := slices.ContainsFunc(before.Interfaces, func(e CardEntry) bool { return e.Name == c.Name && e.Kind != NoCarrier })
		switch {
		case !c.Up:
			words = append(words, c.Name+", which is down")
		case !c.Address.IsValid():
			words = append(words, c.Name+", without an address")
		case !c.Running:
			words = append(words, fmt.Sprintf("%s (%v), without a carrier", c.Name, c.Address))
		case !probed && c.Kind == Ordinary:
			words = append(words, fmt.Sprintf("%s (%v), which came up during the probes", c.Name, c.Address))
		default:
			words = append(words, fmt.Sprintf("%s (%v)", c.Name, c.Address))
		}
		ready = ready || c.ready()
	}
	return cmp.Or(strings.Join(words, "; "), "no interface except loopback"), ready
}

// Apply marks the selected interfaces. It reports whether the selection differs from
// what the names and kinds of the interfaces suggest.
func (d *Decision) Apply(list []Candidate) (surprising bool) {
	for i := range list {
		c := &list[i]
		if !c.Possible {
			c.Taken = false // such as the loopback interface of a host without another
			continue
		}
		promised := c.Taken
		if c.Taken = slices.Contains(d.Rails, c.Name); c.Taken {
			c.Why = d.Peers
		} else if c.Kind == Ordinary {
			c.Why = "nobody answers over it"
		} else if c.Kind != NoCarrier {
			c.Why += ", and it is not needed"
		}
		surprising = surprising || c.Taken != promised
	}
	return surprising
}
