package rdma

// Device counters. A device counts where the event happens and touches only its own
// memory. A counter that would cost more than an addition is computed when Caps.Count
// is called. Package prof sums the counters of a rank's devices by name and shows those of
// all ranks.

// Counter is the name of a counter: a group, a dot, and the name within the group. A
// device may define names in addition to these. Counters in the group "memory" are bytes
// that the device uses for communication at the time of the call; where the system
// allocates memory on first access, only touched memory counts.
type Counter string

const (
	MemoryReceive     Counter = "memory.receive"     // receive buffers shared by all peers
	MemoryRings       Counter = "memory.rings"       // rings of single busy peers
	MemorySend        Counter = "memory.send"        // send buffers, including unacknowledged data
	MemoryPeers       Counter = "memory.peers"       // state of peers without a connection
	MemoryConnections Counter = "memory.connections" // state and buffers of connections
	MemoryTables      Counter = "memory.tables"      // registrations and outstanding work
	// MemoryKernel is the limit of what the kernel may hold for the device's sockets.
	// It is not the process's own memory.
	MemoryKernel Counter = "memory.kernel"

	ConnectionsRC     Counter = "connections.rc"     // open now
	ConnectionsCRC    Counter = "connections.crc"    // of those, with a CRC of the frames
	ConnectionsMade   Counter = "connections.made"   // since Open
	ConnectionsClosed Counter = "connections.closed" // closed to make room for others
	Sockets           Counter = "connections.sockets"
	PeersKnown        Counter = "peers.known" // resolved, or received from
	PeersRinged       Counter = "peers.rings" // peers that have a ring at this rank

	LowWater Counter = "receive.low-water" // times that few receive buffers were left

	DatagramsSent          Counter = "datagrams.sent"          // including retransmissions
	DatagramsReceived      Counter = "datagrams.received"      // valid ones
	DatagramsRetransmitted Counter = "datagrams.retransmitted" // subset of those sent
	DatagramsDuplicate     Counter = "datagrams.duplicate"     // subset of those received
	DatagramsProbes        Counter = "datagrams.probes"        // sent to elicit an ack, after a probe timeout
	DatagramsTimeouts      Counter = "datagrams.timeouts"      // further timeouts of a silent peer
	DatagramsDropped       Counter = "datagrams.dropped"       // by the kernel, because a receive buffer was full
	DatagramsRefused       Counter = "datagrams.refused"       // damaged, forged, or of another job

	// MessagesCombined counts messages that waited for others of a burst, to be sent with them
	// in one system call (More).
	MessagesCombined      Counter = "messages.combined"
	SegmentsRetransmitted Counter = "segments.retransmitted" // by TCP, on the open connections
)
