package mpi

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/bytesize"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
)

// Config holds the settings of a rank. The zero value selects the defaults. Each
// field has an environment variable, named in its tag, and [ConfigFromEnv] reads
// them all. A variable that starts with MUSTER_ and is not listed here is an
// error, so that a misspelt setting does not pass unnoticed. Fields with the tag agree
// must be the same on all ranks; a job in which they differ ends at once with an error
// that names the setting and the ranks. "muster info" shows the tag default.
type Config struct {
	// Network selects the device between hosts: "ofi" (libfabric, any
	// provider), "ofi:PROVIDER" such as "ofi:tcp;ofi_rxm", "iwarp" (RDMA in
	// software over any Ethernet), or "none". Default: libfabric if the program
	// was built with it and the host has it, else iwarp. The command "muster
	// explain network" shows the choice.
	Network string `env:"MUSTER_NETWORK" default:"libfabric if the program was built with it and the host has it, else iwarp" agree:"value"`
	// Interface is the network interface between hosts, by name, address or
	// network. Network iwarp accepts several, separated by commas, and uses them
	// together. Default: chosen automatically; "muster explain network" shows
	// the choice.
	Interface string `env:"MUSTER_INTERFACE" default:"chosen automatically"`
	// Ports is the range of UDP and TCP ports that network iwarp uses, such as
	// "7000-7099", for hosts behind a firewall. Each rank of a host needs one
	// port, and the first rank one more while the job starts. Default: the
	// kernel chooses. Also "muster run --port-range".
	Ports string `env:"MUSTER_PORTS" default:"the kernel chooses"`
	// Channel selects how network iwarp carries messages: "rd" (reliable
	// datagrams, one socket for all ranks), "rc" (a TCP connection to each peer
	// that a rank exchanges messages with; needs no UDP, and uses one interface),
	// "hybrid" (datagrams, and connections to the few peers that exchange most),
	// or "ud" (unreliable datagrams over one socket, with reliability above
	// them). Default "hybrid".
	Channel string `env:"MUSTER_CHANNEL" default:"hybrid" agree:"value"`
	// NoSharedMemory sends messages over the network even between ranks of one
	// host. Default false.
	NoSharedMemory bool `env:"MUSTER_NO_SHARED_MEMORY" default:"false" agree:"value"`
	// Encrypt encrypts the messages of network iwarp: AES-GCM for datagrams,
	// TLS 1.3 for connections. It reduces the bandwidth (docs/reference/security.md). Shared
	// memory stays on the host and is not encrypted. Libfabric cannot encrypt,
	// so a job that needs it fails to start. All ranks need the same value.
	// Default off: messages are authenticated but readable. The environment
	// variable is on or off.
	Encrypt bool `env:"MUSTER_ENCRYPT" default:"off"`
	// StartTimeout bounds each step of joining the job and of connecting to
	// another rank. Default 60s.
	StartTimeout time.Duration `env:"MUSTER_START_TIMEOUT" default:"60s"`
	// PeerTimeout is how long a peer on network iwarp may be silent while
	// something is under way to it, before calls fail. It holds for all channels.
	// A shorter interruption of the network costs no more than its duration. A
	// rank whose host reports that its process has ended fails after a second.
	// "muster run" uses the value of its environment for hosts: one that does not
	// answer for so long is lost, with its ranks. Default 30s.
	PeerTimeout time.Duration `env:"MUSTER_PEER_TIMEOUT" default:"30s"`
	// Progress selects what moves large messages of shared memory and of
	// libfabric while the program computes: "polling" (nothing: they move while
	// a goroutine of the rank is in a call, or by the device and the peer alone)
	// or "async" (the progress thread of the rank, which acts only while large
	// non-blocking operations are under way). Default polling: the thread needs
	// a core for what it copies, and finds none free where each rank owns one
	// core. Over the software network the thread always acts.
	Progress string `env:"MUSTER_PROGRESS" default:"polling"`
	// EagerLimit is the size in bytes up to which a message may be sent before
	// its receive is known, whatever the cost estimates say. A receiver buffers
	// such messages until it receives them. Default 65536.
	EagerLimit int `env:"MUSTER_EAGER_LIMIT" default:"65536"`
	// BufferedLimit is the number of bytes that [Bsend] may buffer. Default
	// 67108864.
	BufferedLimit int64 `env:"MUSTER_BUFFERED_LIMIT" default:"67108864"`
	// Collective selects the algorithms of collectives, such as
	// "allreduce=ring,bcast=chain:segment=8192"; "muster explain" lists them. An
	// algorithm that cannot serve a call is ignored for that call. All ranks need
	// the same value. Default: by estimated cost.
	Collective string `env:"MUSTER_COLLECTIVE" default:"by estimated cost" agree:"value"`
	// Tuning is the file with the best algorithm for each size, as "muster tune"
	// writes it. All ranks need the same value. Default: by estimated cost.
	Tuning string `env:"MUSTER_TUNING" default:"by estimated cost" agree:"file"`
	// Profile reports the activity of the job when it ends, with the time in each
	// call and call site: "text" prints the report at rank 0 on standard error; a
	// name that ends in .json is a file that rank 0 writes. "arrivals" reports
	// instead when ranks arrived at collectives; "arrivals:FILE.svg" also draws it and "arrivals:FILE.json"
	// writes it. All ranks need the same value. Default: none. See also [Profile]
	// and "muster run --profile".
	Profile string `env:"MUSTER_PROFILE" default:"none" agree:"value"`
	// Trace is a file that rank 0 writes when the job ends: the calls of all ranks with
	// their times, and their messages, for the Perfetto UI and "muster trace". Its name
	// ends in .json, or .json.gz to compress it. All ranks must set it, and the
	// value of rank 0 counts. Default: none. Also "muster run --trace".
	Trace string `env:"MUSTER_TRACE" default:"none" agree:"set"`
	// PProf is a directory to which each rank of a job of processes writes a CPU
	// profile for "go tool pprof", rank-N.pprof, when it leaves the job. Default:
	// none. Also "muster run --pprof".
	PProf string `env:"MUSTER_PPROF" default:"none"`
	// Metrics is how often a rank makes its counters available to the launcher,
	// for "muster run --metrics". Default 0: never.
	Metrics time.Duration `env:"MUSTER_METRICS" default:"0"`
	// Check compares what both sides of a message, and all ranks of a collective
	// call, must have in common: element types, operations, roots, counts and the
	// kind of call. Errors name both sides with file and line, and [World.Finalize]
	// reports messages that were not received and requests that were not completed.
	// It costs two copies of each message and a message for each collective call.
	// Default off; package mpitest sets it. The environment variable is on or off.
	Check bool `env:"MUSTER_CHECK" default:"off" agree:"value"`
	// OnFailure selects what happens when a rank fails: "end" (all calls of all ranks
	// return an error, and the job ends) or "return" (only calls that involve the failed
	// rank return an error, and the job continues; see [Comm.Shrink]). "return" needs
	// "muster run" on Linux. All ranks need the same value. Default end.
	OnFailure string `env:"MUSTER_ON_FAILURE" default:"end" agree:"value"`
	// Hook observes the calls of the rank, for tools; see [Hook]. It can be set only in a
	// program. Default nil.
	Hook Hook
	// Advanced holds settings that few programs need.
	Advanced Advanced
}

// Advanced holds the settings of [Config] that serve measurements, unusual hosts
// and tests of the library.
type Advanced struct {
	// Rendezvous forces the protocol of large messages: "get" (the receiver
	// reads), "put" (the sender writes) or "coop" (both copy; "get" while 256
	// sends of a rank wait for their receives). Default: by estimated cost.
	Rendezvous string `env:"MUSTER_RENDEZVOUS" default:"by estimated cost"`
	// Speculate selects whether a non-blocking receive of a large message offers
	// its buffer to the sender before the sender asks: "auto" (while senders use
	// most of the offers; in shared memory a receiver that waits helps to copy),
	// "always" (regardless of use, and the sender copies alone: the technique as
	// published, for measurements) or "never". Default: auto, but never where
	// data arrives only while the receiver is in a call, such as over libfabric's
	// providers that use sockets.
	Speculate string `env:"MUSTER_SPECULATE" default:"auto"`
	// Credit is the number of bytes of unexpected messages that a rank buffers,
	// from all senders together, but at least 192 from each. Beyond that, short
	// messages wait at the sender too. All ranks need the same value. Default
	// 8388608.
	Credit int64 `env:"MUSTER_CREDIT" default:"8388608" agree:"value"`
	// Eager selects where short messages between hosts are received: "srq"
	// (receive buffers that all senders share), "rings" (the same, and a ring
	// into which each of the most active senders writes: more memory, higher
	// speed on adapters), "few" (rings, and a few receive buffers for each
	// connection of network iwarp), or "posted" (receive buffers that this rank
	// posts as needed, instead of those of the device). Default "srq".
	Eager string `env:"MUSTER_EAGER" default:"srq"`
	// Spin is how many times a waiting call polls before it yields its core.
	// Default 1000, or 2 when ranks share cores; 1 on systems other than Linux.
	Spin int `env:"MUSTER_SPIN" default:"1000, or 2 when ranks share cores; 1 on systems other than Linux"`
	// Yield is how many times a waiting call yields its core before it sleeps.
	// Default 500; 0 on systems other than Linux.
	Yield int `env:"MUSTER_YIELD" default:"500; 0 on systems other than Linux"`
	// RanksOnCores is the number of ranks that share the cores of this machine, where
	// several hosts of the job are one machine, such as containers: if it exceeds
	// the cores, waiting calls yield early. Default the ranks of this host; with
	// muster run --lab all ranks.
	RanksOnCores int `env:"MUSTER_RANKS_ON_CORES" default:"the ranks of this host; with muster run --lab all ranks"`
	// RingBytes is the size of the ring buffer between two ranks of a host that
	// communicate often. Default 524288 for a handful of ranks, else 131072.
	RingBytes int `env:"MUSTER_RING_BYTES" default:"524288 for a handful of ranks, else 131072"`
	// Rings is the number of ring buffers that a rank has for senders; other
	// senders share a queue. Default 64, fewer where shared memory is short.
	Rings int `env:"MUSTER_RINGS" default:"64, fewer where shared memory is short"`
	// NoProcessVM keeps the library from copying between processes with
	// process_vm_readv and process_vm_writev. Default false: it uses them where
	// the system allows it, and copies through shared memory elsewhere. With
	// Yama's ptrace_scope 1 a rank permits the processes of its user to access
	// its memory (PR_SET_PTRACER_ANY), unless NoProcessVM is true.
	NoProcessVM bool `env:"MUSTER_NO_PROCESS_VM" default:"false"`
	// NoMemfd creates shared memory as files under /dev/shm instead of with
	// memfd_create. Default false.
	NoMemfd bool `env:"MUSTER_NO_MEMFD" default:"false"`
	// MaxConnections is the maximum number of connections of a rank with channel
	// hybrid. Default 16.
	MaxConnections int `env:"MUSTER_MAX_CONNECTIONS" default:"16"`
	// ConnectionCRC protects each frame of a TCP connection of network iwarp
	// (channels rc and hybrid) by a CRC32C, in addition to TCP's checksum. A
	// connection has it if either end requests it (RFC 5044). Encryption detects
	// every change by itself and needs none. Default off: it takes a third of the
	// processor time of long messages (docs/reference/security.md). Datagrams
	// between hosts always have a CRC. The environment variable is on or off.
	ConnectionCRC bool `env:"MUSTER_CONNECTION_CRC" default:"off"`
	// RegisterCache is the number of bytes of memory that may stay registered
	// with a network adapter after use, in case they are used again. Default
	// 268435456; negative: none.
	RegisterCache int64 `env:"MUSTER_REGISTER_CACHE" default:"268435456"`
	// Frequent selects whether short messages, puts and gets use the program's
	// own buffer where a network adapter needs it registered: "auto" (once a
	// buffer is used so often that registration saves more copying than it
	// costs), "always" (from the first use, for measurements) or "never" (always
	// copied). It has no effect on devices that send from any memory; see "muster
	// explain". Default auto.
	Frequent string `env:"MUSTER_FREQUENT" default:"auto"`
	// TraceLimit is how many calls of a rank a trace records, with about 90 bytes of
	// memory each; later ones are counted. Default 65536.
	TraceLimit int `env:"MUSTER_TRACE_LIMIT" default:"65536"`
	// Strict makes network iwarp behave like an adapter: memory must be
	// registered before it is sent from or received into, and registration locks
	// its pages. It is for tests and benchmarks of registration. Default false.
	Strict bool `env:"MUSTER_STRICT" default:"false"`
	// TolerateLengths keeps a communicator usable after a collective call of at
	// most 511 bytes whose length differed between ranks: the ranks that detect
	// it get an error, and the call completes. Default false: all later
	// collective calls on the communicator fail. The C interface sets it, because
	// MPICH behaves so.
	TolerateLengths bool `env:"MUSTER_TOLERATE_LENGTHS" default:"false" agree:"value"`
}

// internalVars are set by the launcher for the library, not by users.
var internalVars = [...]string{pmi.EnvBoard, pmi.EnvLifeline, pmi.EnvSpares}

// joinVars give a process without a launcher its rank and the address of the job; package
// pmi reads them.
var joinVars = [...]string{"MUSTER_RANK", "MUSTER_SIZE", "MUSTER_ROOT", "MUSTER_KEY"}

// ConfigFromEnv returns the configuration in an environment of the form of os.Environ.
func ConfigFromEnv(environ []string) (*Config, error) {
	cfg := &Config{}
	v := reflect.ValueOf(cfg).Elem()
	for _, kv := range environ {
		name, val, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "MUSTER_") {
			continue
		}
		field, ok := fieldFor(v, name)
		if !ok {
			if isInternal(name) {
				continue
			}
			return nil, unknownVariable(name)
		}
		if err := setField(field, val); err != nil {
			return nil, fmt.Errorf("mpi: environment: %s=%s: %w", name, val, err)
		}
	}
	return cfg, cfg.validate()
}

func isInternal(name string) bool {
	return slices.Contains(internalVars[:], name) || slices.Contains(joinVars[:], name)
}

func fieldFor(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("env") == name {
			return v.Field(i), true
		}
		if f.Type.Kind() == reflect.Struct {
			if nested, ok := fieldFor(v.Field(i), name); ok {
				return nested, true
			}
		}
	}
	return reflect.Value{}, false
}

func setField(f reflect.Value, val string) error {
	switch {
	case f.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(val)
		if err != nil {
			return fmt.Errorf("want a duration such as 90s")
		}
		f.SetInt(int64(d))
	case f.CanInt():
		n, err := bytesize.Parse(val)
		if err != nil {
			return fmt.Errorf("want a whole number, or a size such as 64K")
		}
		f.SetInt(n)
	case f.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(val)
		switch {
		case val == settingOn:
			b = true
		case val == settingOff:
			b = false
		case err != nil:
			return fmt.Errorf("want on or off, or 1 or 0")
		}
		f.SetBool(b)
	default:
		f.SetString(val)
	}
	return nil
}

func (c *Config) validate() error {
	switch c.Advanced.Rendezvous {
	case "", "get", "put", "coop":
	default:
		return fmt.Errorf("mpi: Config.Advanced.Rendezvous (MUSTER_RENDEZVOUS) is %q; want get, put or coop", c.Advanced.Rendezvous)
	}
	switch c.Advanced.Speculate {
	case "", "auto", "always", "never":
	default:
		return fmt.Errorf("mpi: Config.Advanced.Speculate (MUSTER_SPECULATE) is %q; want auto, always or never", c.Advanced.Speculate)
	}
	switch c.Advanced.Frequent {
	case "", "auto", engine.FrequentAlways, engine.FrequentNever:
	default:
		return fmt.Errorf("mpi: Config.Advanced.Frequent (MUSTER_FREQUENT) is %q; want auto, always or never%s", c.Advanced.Frequent,
			didYouMean(c.Advanced.Frequent, "auto", engine.FrequentAlways, engine.FrequentNever))
	}
	switch c.Progress {
	case "", "polling", progressAsync:
	default:
		return fmt.Errorf("mpi: Config.Progress (MUSTER_PROGRESS) is %q; want polling or async%s", c.Progress,
			didYouMean(c.Progress, "polling", progressAsync))
	}
	switch c.Advanced.Eager {
	case "", "srq", eagerRings, eagerFew, eagerPosted:
	default:
		return fmt.Errorf("mpi: Config.Advanced.Eager (MUSTER_EAGER) is %q; want srq, rings, few or posted%s", c.Advanced.Eager, didYouMean(c.Advanced.Eager, "srq", eagerRings, eagerFew, eagerPosted))
	}
	switch c.Channel {
	case "", channelHybrid, channelRD, channelRC, channelUD:
	default:
		return fmt.Errorf("mpi: Config.Channel (MUSTER_CHANNEL) is %q; want hybrid, rd, rc or ud%s", c.Channel, didYouMean(c.Channel, channelHybrid, channelRD, channelRC, channelUD))
	}
	switch c.OnFailure {
	case "", onFailureEnd, onFailureReturn:
	default:
		return fmt.Errorf("mpi: Config.OnFailure (MUSTER_ON_FAILURE) is %q; want end or return%s", c.OnFailure, didYouMean(c.OnFailure, onFailureEnd, onFailureReturn))
	}
	if err := checkNetwork(c.Network); err != nil {
		return err
	}
	if err := checkPorts(c.Ports); err != nil {
		return err
	}
	if err := checkProfile(c.Profile); err != nil {
		return err
	}
	if err := checkTrace(c); err != nil {
		return err
	}
	if _, err := forced(c.Collective); err != nil {
		return fmt.Errorf("mpi: Config.Collective (MUSTER_COLLECTIVE) is %q: %w", c.Collective, err)
	}
	if c.StartTimeout < 0 || c.PeerTimeout < 0 {
		return fmt.Errorf("mpi: Config.StartTimeout (MUSTER_START_TIMEOUT) is %v and PeerTimeout (MUSTER_PEER_TIMEOUT) %v; neither can be negative", c.StartTimeout, c.PeerTimeout)
	}
	if c.Metrics < 0 || c.Metrics > 0 && c.Metrics < metricsMin {
		return fmt.Errorf("mpi: Config.Metrics (MUSTER_METRICS) is %v; want at least %v, or 0 for never", c.Metrics, metricsMin)
	}
	if c.EagerLimit < 0 || c.Advanced.Credit < 0 || c.Advanced.Spin < 0 || c.Advanced.RanksOnCores < 0 || c.Advanced.Yield < 0 || c.Advanced.RingBytes < 0 || c.Advanced.Rings < 0 || c.BufferedLimit < 0 || c.Advanced.MaxConnections < 0 {
		return fmt.Errorf("mpi: Config holds a negative number; leave a field 0 for its default")
	}
	return nil
}

const (
	eagerRings  = "rings"
	eagerFew    = "few"
	eagerPosted = "posted"
	ringPeers   = 16 // that may have a ring
	fewBuffers  = 8  // of a connection
	fewBuffer   = 16 << 10
)

const (
	settingOn  = "on"
	settingOff = "off"
)

// encryptText returns Encrypt as it is set in the environment.
func (c *Config) encryptText() string {
	if c.Encrypt {
		return settingOn
	}
	return settingOff
}

// peerTimeout returns PeerTimeout or its default.
func (c *Config) peerTimeout() time.Duration {
	if c.PeerTimeout == 0 {
		return 30 * time.Second
	}
	return c.PeerTimeout
}

// credit returns Credit or its default.
func (c *Config) credit() int64 {
	if c.Advanced.Credit == 0 {
		return 8 << 20
	}
	return c.Advanced.Credit
}

func (c *Config) rings() int {
	if c.Advanced.Eager == eagerRings || c.Advanced.Eager == eagerFew {
		return ringPeers
	}
	return 0
}

// progressAsync is the Config.Progress with a progress thread.
const progressAsync = "async"

// didYouMean suggests the nearest word, if one is similar.
func didYouMean(got string, words ...string) string {
	for _, w := range words {
		if editDistance(strings.ToLower(got), w) <= len(w)/3 {
			return fmt.Sprintf("; did you mean %s?", w)
		}
	}
	return ""
}

// unknownVariable returns an error that suggests the nearest name.
func unknownVariable(name string) error {
	best, dist := "", 1<<30
	for _, known := range variables(reflect.TypeFor[Config]()) {
		if d := editDistance(name[len("MUSTER_"):], known[len("MUSTER_"):]); d < dist {
			best, dist = known, d
		}
	}
	if dist <= len(name)/4 {
		return fmt.Errorf("mpi: environment: there is no setting %s; did you mean %s? Unset it or correct it", name, best)
	}
	return fmt.Errorf("mpi: environment: there is no setting %s; the settings are the fields of mpi.Config (go doc mpi.Config)", name)
}

// variables lists the environment variables of a struct and of the structs in it.
func variables(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if name := f.Tag.Get("env"); name != "" {
			names = append(names, name)
		} else if f.Type.Kind() == reflect.Struct {
			names = append(names, variables(f.Type)...)
		}
	}
	return names
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, diag+1)
		}
	}
	return row[len(b)]
}
