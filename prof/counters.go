package prof

// What one rank has counted: the names of its counters, and their values.

import (
	"cmp"
	"slices"
	"strings"
)

// Name is the name of a counter: what it is about, a dot, and which one it is. What
// begins with "memory." is in bytes, and what begins with "time." in nanoseconds.
// Devices add counters of their own, see rdma.Counter.
type Name string

// The counters of a rank. Devices have further ones.
const (
	MessagesSent       Name = "messages.sent"
	MessagesReceived   Name = "messages.received"   // that a receive has asked for
	MessagesUnexpected Name = "messages.unexpected" // of these, came before their receive
	MessagesWaiting    Name = "messages.waiting"    // came, and no receive has asked for them yet
	MessagesNoCredit   Name = "messages.no-credit"  // short, but had to ask first: the receiver holds too much
	BytesSent          Name = "bytes.sent"          // of messages
	BytesReceived      Name = "bytes.received"      // of messages
	BytesControl       Name = "bytes.control"       // sent in packets without data
	PacketsHeld        Name = "packets.held"        // came before others that were sent first
	PacketsDuplicate   Name = "packets.duplicate"   // came twice
	PacketsByRing      Name = "packets.by-ring"     // sent by writing them into a ring at the receiver

	CollectivesByMessages Name = "collectives.messages" // calls that sent messages, as far as they had any to send
	CollectivesAware      Name = "collectives.aware"    // of these, served first who had arrived
	CollectivesEarly      Name = "collectives.early"    // sends in these that went before others
	// CollectivesShared is calls made in memory that the ranks of a host share. It is
	// known when the job ends, not before.
	CollectivesShared Name = "collectives.shared"

	OffersMade     Name = "offers.made" // buffers that a receive has offered to the sender before it asked
	OffersUsed     Name = "offers.used"
	OffersWasted   Name = "offers.wasted"   // the message came by another way
	OffersRevoked  Name = "offers.revoked"  // the receive was cancelled
	OffersWithheld Name = "offers.withheld" // not made, since too few are used
	OffersLate     Name = "offers.late"     // as the sender: came after their message had gone

	PeersTalkedTo    Name = "peers.talked-to"   // sent to or heard from
	AddressesFetched Name = "addresses.fetched" // asked of the launcher

	RegistrationsHit     Name = "registrations.hit"  // memory that was found registered
	RegistrationsMissed  Name = "registrations.made" // memory that had to be
	RegistrationsEvicted Name = "registrations.evicted"

	// Short messages, puts and gets on a device that wants local memory registered.
	BuffersDirect   Name = "buffers.direct"   // moved from or to where they are, since the buffer is used often
	BuffersCopied   Name = "buffers.copied"   // copied, since it is not yet
	BuffersRefused  Name = "buffers.refused"  // copied, since the device could not register it
	BuffersKnown    Name = "buffers.known"    // whose uses are counted
	BuffersFrequent Name = "buffers.frequent" // of these, used often

	// Receive buffers that ranks post themselves.
	ReceiveBuffers     Name = "receive.buffers"      // now
	ReceiveBuffersMost Name = "receive.buffers-most" // that there ever were
	ReceiveGrown       Name = "receive.grown"        // times that more were posted
	ReceiveShrunk      Name = "receive.shrunk"       // times that some were given up

	BackgroundDuties Name = "background.duties" // times that the thread of asynchronous progress was in charge
	BackgroundWakes  Name = "background.wakes"
	BackgroundServed Name = "background.served"

	TimeRunning Name = "time.running" // since the rank joined the job
	TimeWaiting Name = "time.waiting" // of it, in calls that waited so long that they gave their core away
	Waits       Name = "waits.long"   // how many such waits there were

	MemoryLinks      Name = "memory.links"      // what is known of peers that were talked to
	MemoryOperations Name = "memory.operations" // sends and receives, and messages kept for reuse
	MemoryMatching   Name = "memory.matching"   // envelopes
	MemoryUnexpected Name = "memory.unexpected" // the most data that waited for its receive at one time
	MemoryScratch    Name = "memory.scratch"    // kept for collectives
	MemorySegments   Name = "memory.segments"   // this rank's share of the memory in which collectives of a host work
	MemoryBuffered   Name = "memory.buffered"   // copies that Bsend holds
	// MemoryRegistered is the program's own memory that is registered with a network
	// adapter, and so cannot be swapped out. It is no part of MemoryTotal.
	MemoryRegistered Name = "memory.registered"
	// MemoryKernel is what the kernel may hold for sockets. It is no part of MemoryTotal.
	MemoryKernel Name = "memory.kernel"
	// MemoryTotal is the communication memory of a rank: all that begins with "memory."
	// but the two above.
	MemoryTotal Name = "memory.total"

	// Hosts is 1 at one rank of each host.
	Hosts Name = "job.hosts"
)

// Counters is what one rank has counted.
type Counters struct {
	Rank    int
	Host    string
	Devices []string // their names, the one that carries most first
	Values  map[Name]uint64
	Sizes   []SizeClass // of the messages that were sent, those classes that have any
	Peers   []Pair      // to whom they were sent
}

// SizeClass counts messages of From to To bytes that one protocol has carried.
type SizeClass struct {
	Protocol string `json:"protocol"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Pair counts the messages from one rank to another.
type Pair struct {
	From     int    `json:"from"`
	To       int    `json:"to"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Of is the value of a counter, 0 if the rank does not have it.
func (c *Counters) Of(name Name) uint64 { return c.Values[name] }

// Add adds to a counter.
func (c *Counters) Add(name Name, value uint64) {
	if c.Values == nil {
		c.Values = map[Name]uint64{}
	}
	c.Values[name] += value
	if name.isOwnMemory() {
		c.Values[MemoryTotal] += value
	}
}

// AddSizes adds messages of a protocol. class is 0 for messages without data and k for
// those of 2^(k-1) to 2^k - 1 bytes.
func (c *Counters) AddSizes(protocol string, class int, messages, bytes uint64) {
	s := SizeClass{Protocol: protocol, Messages: messages, Bytes: bytes}
	if class > 0 {
		s.From, s.To = 1<<(class-1), 1<<class-1
	}
	c.Sizes = append(c.Sizes, s)
}

// isOwnMemory reports whether a counter is part of MemoryTotal.
func (n Name) isOwnMemory() bool {
	return strings.HasPrefix(string(n), "memory.") && n != MemoryTotal && n != MemoryRegistered && n != MemoryKernel
}

// byBytes orders pairs, the busiest first.
func byBytes(a, b Pair) int {
	return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

// busiest is the first few pairs in that order.
func busiest(pairs []Pair) []Pair {
	pairs = slices.SortedFunc(slices.Values(pairs), byBytes)
	return slices.Clip(pairs[:min(len(pairs), pairsKept)])
}

// pairsKept is how many of the busiest pairs a summary names.
const pairsKept = 5
