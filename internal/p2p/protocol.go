package p2p

// The choice of a protocol. Each protocol reports the sizes at which it applies to a link
// and its cost there. The lower envelope of these lines is computed once per device, so a
// send only looks up its size. Choices returns the table for display.

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Protocol is a way to carry a message. It is stateless: the state is in the Xfer.
type Protocol interface {
	// Probe returns the sizes for which the protocol can serve the link, and the cost
	// there. It is pure; nil means that it cannot.
	Probe(k Key, l *Link) []Range
	// Begin starts a send.
	Begin(m *Machine, x *Xfer)
	// Step handles an event of a send or receive. It returns false, and changes nothing,
	// if the event is invalid in x's stage.
	Step(m *Machine, x *Xfer, ev Event) bool
	// Abort releases the operation's resources; the machine then completes it.
	Abort(m *Machine, x *Xfer)
}

// Key holds the parameters of a choice besides the size.
type Key struct {
	EagerLimit int     // Config.EagerLimit
	Rendezvous string  // Config.Rendezvous
	TimeSlice  float64 // Config.TimeSlice
}

// timeSlices returns the cost of waiting n times for the peer to get a core.
func (k *Key) timeSlices(n int, l *Link) rdma.Cost {
	if l.Attr.Oversubscribed {
		return rdma.Cost{}
	}
	return rdma.Cost{Fixed: float64(n) * k.TimeSlice}
}

// Range is a protocol's cost between two sizes, both included.
type Range struct {
	Lo, Hi int
	Cost   rdma.Cost
}

// MaxSize is the Hi of a range without a limit.
const MaxSize = int(^uint(0) >> 1)

// Event is an event of a pending operation.
type Event struct {
	Kind   EventKind
	Status rdma.Status
	Len    int
	Addr   uint64
	Key    uint64
	Peer   uint64 // the other side's handle
}

// EventKind names an Event.
type EventKind uint8

const (
	EvMatched EventKind = iota // receive: an RTS matched it
	EvTaken                    // send: the device has copied the last packet
	EvDone                     // a work request has completed
	EvCTS                      // send: the receiver is ready
	EvFIN                      // the other side has transferred the data
	EvACK                      // send: a synchronous message was matched
	evFailed                   // for observers: the operation fails
)

var eventNames = [...]string{"matched", "taken", "done", "CTS", "FIN", "ACK", "failed"}

func (k EventKind) String() string { return eventNames[k] }

// Protocol numbers. They are part of the wire format (RTS).
const (
	protoEager = iota
	protoGet
	protoPut
	protoCoop
	protoSpec
	protoOneSided // never in an RTS
	protocolCount
	protocolSlots = 8
)

// protocols lists the protocols by number. Nothing else names them: settings, benchmarks,
// profiles and tests read this table.
var protocols = [protocolCount]struct {
	Protocol
	name   string
	forced string  // the Config.Rendezvous that forces it; "": none
	needs  rdma.Op // what the receiver's device must support
}{
	protoEager:    {eager{}, "eager", "", rdma.OpSend},
	protoGet:      {rndvGet{}, "rndv_get", "get", rdma.OpRead},
	protoPut:      {rndvPut{}, "rndv_put", "put", rdma.OpSend},
	protoCoop:     {rndvCoop{}, "rndv_coop", "coop", rdma.OpPull},
	protoSpec:     {rndvSpec{}, "rndv_spec", "", rdma.OpSend},
	protoOneSided: {oneSided{}, "window", "", rdma.OpSend},
}

func protocolName(i uint8) string {
	if int(i) < len(protocols) {
		return protocols[i].name
	}
	return fmt.Sprintf("protocol %d", i)
}

// Protocols returns the names in the order of LinkStats.ByProtocol.
func Protocols() []string {
	names := make([]string, len(protocols))
	for i := range protocols {
		names[i] = protocols[i].name
	}
	return names
}

// Rendezvous returns the values of Config.Rendezvous other than "".
func Rendezvous() (names []string) {
	for i := range protocols {
		if name := protocols[i].forced; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// choice is one piece of the lower envelope.
type choice struct {
	hi    int
	proto uint8
	cost  rdma.Cost
}

// Choice is a piece of a link's table, for display.
type Choice struct {
	Lo, Hi   int
	Protocol string
	Cost     rdma.Cost
}

// Choices returns a link's table.
func (l *Link) Choices() []Choice {
	var out []Choice
	lo := 0
	for _, c := range l.choice {
		out = append(out, Choice{lo, c.hi, protocolName(c.proto), c.cost})
		lo = c.hi + 1
	}
	return out
}

// probe returns the ranges of a protocol, none if another one is forced.
func (k Key) probe(i int, l *Link) []Range {
	p := protocols[i]
	if p.forced != "" && k.Rendezvous != "" && p.forced != k.Rendezvous {
		return nil
	}
	return p.Probe(k, l)
}

// envelope computes the lower envelope of all protocols' costs on a link.
func envelope(k Key, l *Link) []choice {
	type line struct {
		Range
		proto uint8
	}
	var lines []line
	for i := range protocols {
		for _, r := range k.probe(i, l) {
			lines = append(lines, line{r, uint8(i)})
		}
	}
	if len(lines) == 1 && k.Rendezvous != "" {
		return envelope(Key{EagerLimit: k.EagerLimit, TimeSlice: k.TimeSlice}, l) // the device does not support the forced protocol
	}
	if len(lines) == 1 {
		lines[0].Hi = MaxSize // only eager
	}
	// Between two neighboring corners no line begins, ends or crosses another, so one
	// comparison inside decides.
	corners := []int{0}
	for i, a := range lines {
		corners = append(corners, a.Lo)
		if a.Hi < MaxSize {
			corners = append(corners, a.Hi+1)
		}
		for _, b := range lines[:i] {
			if slope := a.Cost.PerByte - b.Cost.PerByte; slope != 0 {
				if at := (b.Cost.Fixed - a.Cost.Fixed) / slope; at > 0 && at < 1<<50 {
					corners = append(corners, int(at)+1)
				}
			}
		}
	}
	slices.Sort(corners)
	var out []choice
	for i, lo := range corners {
		hi := MaxSize
		if i+1 < len(corners) {
			hi = corners[i+1] - 1
		}
		if hi < lo {
			continue
		}
		best := -1
		at := lo + (min(hi, lo+1<<30)-lo)/2
		for j, a := range lines {
			if a.Lo <= lo && a.Hi >= hi && (best < 0 || a.Cost.Of(at) < lines[best].Cost.Of(at)) {
				best = j
			}
		}
		if best < 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].proto == lines[best].proto {
			out[n-1].hi = hi
			continue
		}
		out = append(out, choice{hi, lines[best].proto, lines[best].Cost})
	}
	return out
}

// routes decides how a link carries messages, by their size.
type routes struct {
	choice   []choice // protocols by size, from their costs
	eagerMax int      // largest eager message in standard mode, -1 for none
	segment  int      // data bytes per packet
	oneMax   int      // largest message for SendOne; -1 for none, as while there are offers
	nowMax   int      // largest message for SendNow
	copyMin  int      // one-packet messages from this length on are sent without a copy
	// sourceMin is the least length for which Sources is used (source.go), MaxSize for
	// never.
	sourceMin int
	stageMax  int // the greatest length of puts and gets for which it is used (stage.go), 0 for never
}

// choose returns the protocol for a size.
func (r *routes) choose(n int) uint8 {
	for i := range r.choice {
		if n <= r.choice[i].hi {
			return r.choice[i].proto
		}
	}
	return protoEager
}

// Rendezvous reports whether a standard send of n bytes uses a rendezvous.
func (l *Link) Rendezvous(n int) bool { return n > l.eagerMax && l.Err == nil }

// chooseRendezvous returns the least expensive protocol other than eager, whatever its
// range. A device without any must use eager, and the receiver then holds more than the
// credit.
func (r *routes) chooseRendezvous(n int) uint8 {
	for i := range r.choice {
		if r.choice[i].proto != protoEager && n <= r.choice[i].hi {
			return r.choice[i].proto
		}
	}
	return protoEager
}

// setUp computes the limits from the protocols and the attributes of a device.
func (r *routes) setUp(list []choice, a *rdma.Attr) {
	r.choice = list
	r.eagerMax = -1
	if len(list) > 0 && list[0].proto == protoEager {
		r.eagerMax = list[0].hi
	}
	// Eager data is sent inline: the send completes when the device has copied it.
	r.segment = min(a.MaxSend-headSync, a.MaxInline)
	if h := a.SegmentHint; h > 0 && h < r.segment {
		r.segment = h
	}
	r.segment = max(r.segment, 1)
	r.nowMax, r.copyMin, r.sourceMin = r.eagerMax, MaxSize, MaxSize
	if c := a.CopyAbove; c > 0 && !a.LocalKeys && c < min(r.eagerMax, r.segment) {
		r.nowMax, r.copyMin = c, c+1
	}
}

// device is the state shared by all links over one device.
type device struct {
	attr   *rdma.Attr
	list   []choice // protocols by size, the same for all its peers
	pushes int      // pending OpPush requests (rndv_coop.go)
	// Registrations for messages (register.go).
	exposed, matched int
}

// deviceOf returns the state of the device of a link.
func (m *Machine) deviceOf(l *Link) *device {
	for _, d := range m.devices {
		if d.attr == l.Attr {
			return d
		}
	}
	d := &device{attr: l.Attr, list: envelope(Key{m.cfg.EagerLimit, m.cfg.Rendezvous, m.cfg.TimeSlice}, l)}
	m.devices = append(m.devices, d)
	return d
}

// setUp prepares a link for its first use.
func (l *Link) setUp(m *Machine) {
	l.device = m.deviceOf(l)
	l.routes.setUp(l.device.list, l.Attr)
	l.setOneMax()
	l.credit, l.granted = m.creditPool.first, m.creditPool.first
	if l.Err != nil { // created for a peer that has failed already
		l.fail(l.Err)
	}
}
