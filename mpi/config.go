package mpi

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/settings"
)

// Config holds the settings of a rank. The zero value selects the defaults. The tags of
// a field are its environment variable, its default, and the words or the range of numbers
// that it allows. [ConfigFromEnv] reads the variables. A variable that starts with MUSTER_
// and is not listed here is an error, so that a misspelt setting does not pass unnoticed.
// Fields with the tag agree must be the same on all ranks; a job in which they differ ends
// at once with an error that names the setting and the ranks. "muster info" shows all
// settings.
type Config struct {
	// Network selects the device between hosts: "ofi" (libfabric, any
	// provider), "ofi:PROVIDER" such as "ofi:tcp;ofi_rxm", "iwarp" (RDMA in
	// software over any Ethernet), or "none". The command "muster explain network"
	// shows the choice.
	Network string `env:"MUSTER_NETWORK" default:"libfabric if the program was built with it and the host has it, else iwarp" agree:"value"`
	// Interface is the network interface between hosts, by name, address or
	// network. Network iwarp accepts several, separated by commas, and uses them
	// together. "muster explain network" shows the choice.
	Interface string `env:"MUSTER_INTERFACE" default:"chosen automatically"`
	// Ports is the range of UDP and TCP ports that network iwarp uses, such as
	// "7000-7099", for hosts behind a firewall. Each rank of a host needs one
	// port, and the first rank one more while the job starts. Also "muster run
	// --port-range".
	Ports string `env:"MUSTER_PORTS" default:"the kernel chooses"`
	// Channel selects how network iwarp carries messages: "rd" (reliable
	// datagrams, one socket for all ranks), "rc" (a TCP connection to each peer
	// that a rank exchanges messages with; needs no UDP, and uses one interface),
	// "hybrid" (datagrams, and connections to the few peers that exchange most),
	// or "ud" (unreliable datagrams over one socket, with reliability above
	// them).
	Channel string `env:"MUSTER_CHANNEL" default:"hybrid" agree:"value"`
	// NoSharedMemory sends messages over the network even between ranks of one
	// host.
	NoSharedMemory bool `env:"MUSTER_NO_SHARED_MEMORY" default:"off" agree:"value"`
	// Encrypt encrypts the messages of network iwarp: AES-GCM for datagrams,
	// TLS 1.3 for connections. It reduces the bandwidth (docs/reference/security.md). Shared
	// memory stays on the host and is not encrypted. Libfabric cannot encrypt,
	// so a job that needs it fails to start. All ranks need the same value.
	// Without it messages are authenticated but readable.
	Encrypt bool `env:"MUSTER_ENCRYPT" default:"off"`
	// StartTimeout bounds each step of joining the job and of connecting to
	// another rank.
	StartTimeout time.Duration `env:"MUSTER_START_TIMEOUT" default:"60s"`
	// PeerTimeout is how long a peer on network iwarp may be silent while
	// something is under way to it, before calls fail. It holds for all channels.
	// A shorter interruption of the network costs no more than its duration. A
	// rank whose host reports that its process has ended fails after a second.
	// "muster run" uses the value of its environment for hosts: one that does not
	// answer for so long is lost, with its ranks.
	PeerTimeout time.Duration `env:"MUSTER_PEER_TIMEOUT" default:"30s"`
	// Progress selects what moves large messages of shared memory and of
	// libfabric while the program computes: "polling" (nothing: they move while
	// a goroutine of the rank is in a call, or by the device and the peer alone)
	// or "async" (the progress thread of the rank, which acts only while large
	// non-blocking operations are under way). The thread needs a core for what it
	// copies, and finds none free where each rank owns one core. Over the software
	// network it always acts.
	Progress string `env:"MUSTER_PROGRESS" default:"polling" choices:"polling,async"`
	// EagerLimit is the size in bytes up to which a message may be sent before
	// its receive is known, whatever the cost estimates say. A receiver buffers
	// such messages until it receives them.
	EagerLimit int `env:"MUSTER_EAGER_LIMIT" default:"65536"`
	// BufferedLimit is the number of bytes that [Bsend] may buffer.
	BufferedLimit int64 `env:"MUSTER_BUFFERED_LIMIT" default:"67108864"`
	// Collective selects the algorithms of collectives, such as
	// "allreduce=ring,bcast=chain:segment=8192"; "muster explain" lists them. An
	// algorithm that cannot serve a call is ignored for that call. All ranks need
	// the same value.
	Collective string `env:"MUSTER_COLLECTIVE" default:"by estimated cost" agree:"value"`
	// Tuning is the file with the best algorithm for each size, as "muster tune"
	// writes it. All ranks need the same value.
	Tuning string `env:"MUSTER_TUNING" default:"by estimated cost" agree:"file"`
	// Profile reports the activity of the job when it ends, with the time in each
	// call and call site: "text" prints a screen at rank 0 on standard error, "full" all; a
	// name that ends in .json is a file that rank 0 writes. "arrivals" reports
	// instead when ranks arrived at collectives; "arrivals:FILE.svg" also draws it and "arrivals:FILE.json"
	// writes it. All ranks need the same value. See also [World.Profile]
	// and "muster run --profile".
	Profile string `env:"MUSTER_PROFILE" default:"none" agree:"value"`
	// Trace is a file that rank 0 writes when the job ends: the calls of all ranks with
	// their times, and their messages, for the Perfetto UI and "muster trace". Its name
	// ends in .json, or .json.gz to compress it. All ranks must set it, and the
	// value of rank 0 counts. Also "muster run --trace".
	Trace string `env:"MUSTER_TRACE" default:"none" agree:"set"`
	// PProf is a directory to which each rank of a job of processes writes a CPU
	// profile for "go tool pprof", rank-N.pprof, when it leaves the job. Also
	// "muster run --pprof".
	PProf string `env:"MUSTER_PPROF" default:"none"`
	// Metrics is how often a rank makes its counters available to the launcher,
	// for "muster run --metrics". Reading the counters takes the lock that all calls of
	// the rank share, hence the least value.
	Metrics time.Duration `env:"MUSTER_METRICS" default:"never" range:"10ms.."`
	// Check compares what both sides of a message, and all ranks of a collective
	// call, must have in common: element types, operations, roots, counts and the
	// kind of call. Errors name both sides with file and line, and [World.Finalize]
	// reports messages that were not received and requests that were not completed.
	// It costs two copies of each message and a message for each collective call.
	// Package mpitest sets it.
	Check bool `env:"MUSTER_CHECK" default:"off" agree:"value"`
	// OnFailure selects what happens when a rank fails: "end" (all calls of all ranks
	// return an error, and the job ends) or "return" (only calls that involve the failed
	// rank return an error, and the job continues; see [Comm.Shrink]). "return" needs
	// "muster run" on Linux. All ranks need the same value.
	OnFailure string `env:"MUSTER_ON_FAILURE" default:"end" choices:"end,return" agree:"value"`
	// Hook observes the calls of the rank, for tools; see [Hook]. It can be set only in a
	// program.
	Hook Hook
	// Advanced holds settings that few programs need.
	Advanced Advanced
}

// Advanced holds the settings of [Config] that serve measurements, unusual hosts
// and tests of the library.
type Advanced struct {
	// Rendezvous forces the protocol of large messages: the name of one of
	// docs/reference/protocols.md without rndv_, such as "get". "coop" uses "get"
	// while 256 sends of a rank wait for their receives.
	Rendezvous string `env:"MUSTER_RENDEZVOUS" default:"by estimated cost"`
	// Speculate selects whether a non-blocking receive of a large message offers
	// its buffer to the sender before the sender asks: "auto" (while senders use
	// most of the offers; in shared memory a receiver that waits helps to copy),
	// "always" (regardless of use, and the sender copies alone: the technique as
	// published, for measurements) or "never". The default is never where data
	// arrives only while the receiver is in a call, such as over libfabric's
	// providers that use sockets.
	Speculate string `env:"MUSTER_SPECULATE" default:"auto" choices:"auto,always,never"`
	// Credit is the number of bytes of unexpected messages that a rank buffers,
	// from all senders together, but at least 192 from each. Beyond that, short
	// messages wait at the sender too. All ranks need the same value.
	Credit int64 `env:"MUSTER_CREDIT" default:"8388608" agree:"value"`
	// Eager selects where short messages between hosts are received: "srq"
	// (receive buffers that all senders share), "rings" (the same, and a ring
	// into which each of the most active senders writes: more memory, higher
	// speed on adapters), "few" (rings, and a few receive buffers for each
	// connection of network iwarp), or "posted" (receive buffers that this rank
	// posts as needed, instead of those of the device).
	Eager string `env:"MUSTER_EAGER" default:"srq" choices:"srq,rings,few,posted"`
	// Spin is how many times a waiting call polls before it yields its core.
	Spin int `env:"MUSTER_SPIN" default:"1000, 20 while network iwarp is in use, or 2 when ranks share cores; 1 on systems other than Linux"`
	// Yield is how many times a waiting call yields its core before it sleeps.
	Yield int `env:"MUSTER_YIELD" default:"500; 0 on systems other than Linux"`
	// RanksOnCores is the number of ranks that share the cores of this machine, where
	// several hosts of the job are one machine, such as containers: if it exceeds
	// the cores, waiting calls yield early.
	RanksOnCores int `env:"MUSTER_RANKS_ON_CORES" default:"the ranks of this host; with muster run --lab all ranks"`
	// RingBytes is the size of the ring buffer between two ranks of a host that
	// communicate often.
	RingBytes int `env:"MUSTER_RING_BYTES" default:"524288 for a handful of ranks, else 131072"`
	// Rings is the number of ring buffers that a rank has for senders; other
	// senders share a queue.
	Rings int `env:"MUSTER_RINGS" default:"64, fewer where shared memory is short"`
	// NoProcessVM keeps the library from copying between processes with
	// process_vm_readv and process_vm_writev. It uses them where the system
	// allows it, and copies through shared memory elsewhere. With
	// Yama's ptrace_scope 1 a rank permits the processes of its user to access
	// its memory (PR_SET_PTRACER_ANY), unless NoProcessVM is true.
	NoProcessVM bool `env:"MUSTER_NO_PROCESS_VM" default:"off"`
	// NoMemfd creates shared memory as files under /dev/shm instead of with
	// memfd_create.
	NoMemfd bool `env:"MUSTER_NO_MEMFD" default:"off"`
	// MaxConnections is the maximum number of connections of a rank with channel
	// hybrid.
	MaxConnections int `env:"MUSTER_MAX_CONNECTIONS" default:"16"`
	// ConnectionCRC protects each frame of a TCP connection of network iwarp
	// (channels rc and hybrid) by a CRC32C, in addition to TCP's checksum. A
	// connection has it if either end requests it (RFC 5044). Encryption detects
	// every change by itself and needs none. It takes a third of the processor
	// time of long messages (docs/reference/security.md). Datagrams between hosts
	// always have a CRC.
	ConnectionCRC bool `env:"MUSTER_CONNECTION_CRC" default:"off"`
	// RegisterCache is the number of bytes of memory that may stay registered
	// with a network adapter after use, in case they are used again. If
	// it is negative, none may.
	RegisterCache int64 `env:"MUSTER_REGISTER_CACHE" default:"268435456" range:".."`
	// Frequent selects whether short messages, puts and gets use the program's
	// own buffer where a network adapter needs it registered: "auto" (once a
	// buffer is used so often that registration saves more copying than it
	// costs), "always" (from the first use, for measurements) or "never" (always
	// copied). It has no effect on devices that send from any memory; see "muster
	// explain".
	Frequent string `env:"MUSTER_FREQUENT" default:"auto" choices:"auto,always,never"`
	// TraceLimit is how many calls of a rank a trace records, with about 90 bytes of
	// memory each; later ones are counted.
	TraceLimit int `env:"MUSTER_TRACE_LIMIT" default:"65536"`
	// Strict makes network iwarp behave like an adapter: memory must be
	// registered before it is sent from or received into, and registration locks
	// its pages. It is for tests and benchmarks of registration.
	Strict bool `env:"MUSTER_STRICT" default:"off"`
	// TolerateLengths keeps a communicator usable after a collective call of at
	// most 511 bytes whose length differed between ranks: the ranks that detect
	// it get an error, and the call completes. Without it all later
	// collective calls on the communicator fail. The C interface sets it, because
	// MPICH behaves so.
	TolerateLengths bool `env:"MUSTER_TOLERATE_LENGTHS" default:"off" agree:"value"`
}

// otherVars begin with MUSTER_ and are not settings: the launcher sets some for the library,
// and those of joining give a process without a launcher its rank and the address of the
// job. Package pmi reads them.
var otherVars = []string{pmi.EnvBoard, pmi.EnvLifeline, pmi.EnvSpares, pmi.EnvRespawn, pmi.EnvParent, "MUSTER_RANK", "MUSTER_SIZE", "MUSTER_ROOT", "MUSTER_KEY"}

// settingChecks has the settings whose values are more than words or numbers.
var settingChecks = map[string]func(string) error{
	"MUSTER_NETWORK":    checkNetwork,
	"MUSTER_CHANNEL":    checkChannel,
	"MUSTER_PORTS":      checkPorts,
	"MUSTER_COLLECTIVE": func(s string) error { _, err := parseForced(s); return err },
	"MUSTER_PROFILE":    checkProfile,
	"MUSTER_TRACE":      checkTrace,
	"MUSTER_RENDEZVOUS": settings.OneOf(p2p.Rendezvous()...),
}

// ConfigFromEnv returns the configuration in an environment of the form of os.Environ.
func ConfigFromEnv(environ []string) (*Config, error) {
	cfg := &Config{}
	if err := settings.Read(cfg, environ, "MUSTER_", otherVars); err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	return cfg, cfg.validate()
}

func (c *Config) validate() error {
	if err := settings.Check(c, settingChecks); err != nil {
		return fmt.Errorf("mpi: %w", err)
	}
	return nil
}

// Words of the settings.
const (
	progressAsync = "async" // Config.Progress: with a progress thread
	eagerRings    = "rings" // Advanced.Eager
	eagerFew      = "few"
	eagerPosted   = "posted"
)

const (
	ringPeers  = 16 // that may have a ring
	fewBuffers = 8  // of a connection
)

func (c *Config) rings() int {
	if c.Advanced.Eager == eagerRings || c.Advanced.Eager == eagerFew {
		return ringPeers
	}
	return 0
}
