package prof

// The counters of one rank: names and values.

import (
	"cmp"
	"slices"
	"strings"
)

// Name is the name of a counter: a group, a dot, and a name within the group. Counters of
// the group "memory" are in bytes, those of "time" in nanoseconds. Devices add counters
// of their own, see rdma.Counter.
type Name string

// The counters of a rank. Devices have further ones.
const (
	MessagesSent       Name = "messages.sent"
	MessagesReceived   Name = "messages.received"   // matched by a receive
	MessagesUnexpected Name = "messages.unexpected" // of these, arrived before their receive was posted
	MessagesWaiting    Name = "messages.waiting"    // arrived and not yet matched
	MessagesNoCredit   Name = "messages.no-credit"  // short, but sent by rendezvous for lack of credit
	BytesSent          Name = "bytes.sent"          // of messages
	BytesReceived      Name = "bytes.received"      // of messages
	BytesControl       Name = "bytes.control"       // sent in packets without data
	PacketsHeld        Name = "packets.held"        // arrived out of order
	PacketsDuplicate   Name = "packets.duplicate"   // arrived twice
	PacketsByRing      Name = "packets.by-ring"     // written into a ring at the receiver

	CollectivesByMessages Name = "collectives.messages" // calls executed with messages
	CollectivesAware      Name = "collectives.aware"    // of these, arrival-aware
	CollectivesEarly      Name = "collectives.early"    // sends in these that were posted ahead of others
	// CollectivesShared counts calls executed in shared memory of a host. It is set when
	// the job ends.
	CollectivesShared Name = "collectives.shared"

	OffersMade     Name = "offers.made" // receive buffers offered to the sender before its request
	OffersUsed     Name = "offers.used"
	OffersWasted   Name = "offers.wasted"   // the message was sent another way
	OffersRevoked  Name = "offers.revoked"  // the receive was cancelled
	OffersWithheld Name = "offers.withheld" // not made, because too few are used
	OffersLate     Name = "offers.late"     // as the sender: arrived after their message was sent

	PeersTalkedTo    Name = "peers.talked-to"   // sent to or received from
	AddressesFetched Name = "addresses.fetched" // requested from the launcher

	RegistrationsHit     Name = "registrations.hit"  // memory was already registered
	RegistrationsMissed  Name = "registrations.made" // memory had to be registered
	RegistrationsEvicted Name = "registrations.evicted"

	// Short messages, puts and gets on a device that requires registered local memory.
	BuffersDirect     Name = "buffers.direct"     // transferred without a copy, because the buffer is used often
	BuffersByRing     Name = "buffers.ring"       // of these, written into a ring at the peer
	BuffersCollective Name = "buffers.collective" // of these, messages of collectives
	BuffersCopied     Name = "buffers.copied"     // copied, because it is not used often enough
	BuffersRefused    Name = "buffers.refused"    // copied, because the device could not register it
	BuffersKnown      Name = "buffers.known"      // whose uses are counted
	BuffersFrequent   Name = "buffers.frequent"   // of these, used often

	// Buffers of the program that short messages are sent from, on any device. They are
	// counted if the job has a profile.
	BuffersSent      Name = "buffers.sent"       // short messages
	BuffersReused    Name = "buffers.reused"     // of these, from a buffer that was used before
	BuffersMostUses  Name = "buffers.most-uses"  // of the buffer that is used most
	BuffersMostBytes Name = "buffers.most-bytes" // its length

	// Receive buffers that the library posts.
	ReceiveBuffers     Name = "receive.buffers"      // now
	ReceiveBuffersMost Name = "receive.buffers-most" // maximum
	ReceiveGrown       Name = "receive.grown"        // times that the number was increased
	ReceiveShrunk      Name = "receive.shrunk"       // times that the number was decreased

	BackgroundDuties Name = "background.duties" // times that the progress thread was activated
	BackgroundWakes  Name = "background.wakes"
	BackgroundServed Name = "background.served"

	TimeRunning    Name = "time.running"  // since the rank joined the job
	TimeWaiting    Name = "time.waiting"  // of it, in calls that waited long enough to yield their core
	TimeInCalls    Name = "time.in-calls" // of it, in calls of the library; counted if the job has a profile
	TimeLongestGap Name = "time.gap"      // longest time between two polls of such a wait

	Waits            Name = "waits.long"          // number of such waits
	WaitYields       Name = "waits.yields"        // times that they yielded the core
	WaitParks        Name = "waits.parks"         // times that they slept in the device
	WaitParksBlocked Name = "waits.parks-blocked" // of these, while packets waited for room in the device
	WaitParksLate    Name = "waits.parks-late"    // of these, ended by their timeout with something to do
	WaitStalls       Name = "waits.stalls"        // gaps above 5 ms between two polls of a wait that yields

	MemoryLinks      Name = "memory.links"      // state of connected peers
	MemoryOperations Name = "memory.operations" // sends, receives and pooled messages
	MemoryMatching   Name = "memory.matching"   // envelopes
	MemoryUnexpected Name = "memory.unexpected" // maximum of unexpected data at one time
	MemoryScratch    Name = "memory.scratch"    // kept for collectives
	MemorySegments   Name = "memory.segments"   // this rank's share of the shared memory for collectives
	MemoryBuffered   Name = "memory.buffered"   // copies that Bsend holds
	// MemoryRegistered is application memory that is registered with a network adapter
	// and therefore pinned. It is not part of MemoryTotal.
	MemoryRegistered Name = "memory.registered"
	// MemoryKernel is the limit of the kernel's socket buffers. It is not part of
	// MemoryTotal.
	MemoryKernel Name = "memory.kernel"
	// MemoryTotal is the communication memory of a rank: the sum of all other counters of
	// the group "memory", except the two above.
	MemoryTotal Name = "memory.total"

	// Hosts is 1 at one rank of each host.
	Hosts Name = "job.hosts"
)

// PacketsSent is the counter of sent packets of a kind: eager, seg, rts, fin and so on
// (docs/reference/wire.md). A ring or a datagram may carry them; retransmissions do not
// count.
func PacketsSent(kind string) Name { return Name("packets.sent." + kind) }

// Counters holds the counters of one rank.
type Counters struct {
	Rank    int
	Host    string
	Devices []string // their names, the one with the largest volume first
	Values  map[Name]uint64
	Sizes   []SizeClass // non-empty classes of the messages sent
	Peers   []Pair      // messages sent, by peer
	Sites   []CallSite  // calls by call site, if the job has a profile
	Waits   []Wait      // time of waiting by peer, if the job has a profile
}

// SizeClass counts messages of From to To bytes sent with one protocol.
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

// Of returns the value of a counter, or 0 if the rank does not have it.
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

// AddSizes adds messages of a protocol. class is 0 for empty messages and k for those of
// 2^(k-1) to 2^k - 1 bytes.
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

// byBytes orders pairs by volume, the busiest first.
func byBytes(a, b Pair) int {
	return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

// busiest returns the first few pairs in that order.
func busiest(pairs []Pair) []Pair {
	pairs = slices.SortedFunc(slices.Values(pairs), byBytes)
	return slices.Clip(pairs[:min(len(pairs), pairsKept)])
}

// pairsKept is the number of busiest pairs in a summary: all of a job of 64 ranks, for the
// communication matrix.
const pairsKept = 64 * 63
