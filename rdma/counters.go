package rdma

// What devices count. Counting touches memory of the device alone and happens where
// the thing counted happens; a counter that would cost more than an addition is worked
// out when it is asked for. Package prof adds the counters of a rank's devices up, by
// name, and shows those of all ranks.

// CountingDevice is a Device that reports what it holds and what it has done.
type CountingDevice interface {
	Device
	// Count calls add for its counters, as they are now. A name may come more than
	// once; the values belong together then. It is serialised with the other calls, is
	// not meant for the way of a message, and still answers after Close, with what
	// is left.
	Count(add func(name Counter, value uint64))
}

// Counter is the name of a counter: what it is about, a dot, and which one it is. A
// device may have names of its own beside these. What begins with "memory." is bytes
// that the device takes for communication at the time of asking: what it has touched,
// where the system gives memory only then.
type Counter string

const (
	MemoryReceive     Counter = "memory.receive"     // buffers that any peer's messages land in
	MemoryRings       Counter = "memory.rings"       // rings of single busy peers
	MemorySend        Counter = "memory.send"        // buffers to send from, with what waits for its acknowledgement
	MemoryPeers       Counter = "memory.peers"       // state of peers without a connection
	MemoryConnections Counter = "memory.connections" // state and buffers of connections
	MemoryTables      Counter = "memory.tables"      // registrations, and work under way
	// MemoryKernel is what the kernel may hold for the device's sockets, by their
	// limits. It is not the process's own memory.
	MemoryKernel Counter = "memory.kernel"

	ConnectionsRC     Counter = "connections.rc"     // open now
	ConnectionsMade   Counter = "connections.made"   // since Open
	ConnectionsClosed Counter = "connections.closed" // to make room for others
	Sockets           Counter = "connections.sockets"
	PeersKnown        Counter = "peers.known" // resolved, or heard of
	PeersRinged       Counter = "peers.rings" // that have a ring at this rank

	LowWater Counter = "receive.low-water" // times that few receive buffers were left

	DatagramsSent          Counter = "datagrams.sent"          // all of them
	DatagramsReceived      Counter = "datagrams.received"      // that were good
	DatagramsRetransmitted Counter = "datagrams.retransmitted" // of those sent
	DatagramsDuplicate     Counter = "datagrams.duplicate"     // of those received, came before
	DatagramsRefused       Counter = "datagrams.refused"       // damaged, forged, or of another job

	SegmentsRetransmitted Counter = "segments.retransmitted" // by TCP, over the connections that are open
)
