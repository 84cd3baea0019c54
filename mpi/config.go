package mpi

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
)

// Config sets what is worth setting. The zero value is right; every field can
// also be given in the environment, under the name in its tag. A variable that
// starts with MUSTER_ and is not listed here is an error: a misspelt setting
// that is silently ignored costs more than it helps.
type Config struct {
	// EagerLimit is the largest message in bytes that is sent before its
	// receive is known, whatever the costs say. Default 65536: a receiver must
	// hold such messages until it asks for them.
	EagerLimit int `env:"MUSTER_EAGER_LIMIT"`
	// Rendezvous forces how large messages travel: "get" (the receiver reads),
	// "put" (the sender writes) or "coop" (both copy; "get" while 256 of a rank's
	// sends wait for their receives). Default: by cost.
	Rendezvous string `env:"MUSTER_RENDEZVOUS"`
	// Speculate says whether a receive of a large message that was started by a
	// non-blocking call tells the sender where to write, before the sender asks:
	// "auto" (as long as senders use most of these offers; in shared memory a
	// receiver that waits helps to copy), "always" (without regard to that, and the
	// sender copies alone: the technique as the literature has it, for measuring)
	// or "never". Default: auto, but never over providers that need the receiver's
	// processor for every byte that lands, such as sockets.
	Speculate string `env:"MUSTER_SPECULATE"`
	// Progress says who moves large messages while the program computes:
	// "polling" (nobody: they move while some goroutine of the rank is in a call,
	// or by what the device and the other rank do alone) or "async" (a thread of
	// its own, which sleeps until a message asks for something, and only while
	// large non-blocking operations are under way). Default polling: the thread
	// needs a core for what it copies, and has none to itself where every rank
	// owns one.
	Progress string `env:"MUSTER_PROGRESS"`
	// Credit is how many bytes of messages a rank may have to hold before it has
	// asked for them, from all senders together, but not less than 16384 from each.
	// Default 8388608. Beyond that, short messages wait at the sender too. All ranks
	// need the same.
	Credit int64 `env:"MUSTER_CREDIT"`
	// Spin is how many times a waiting call polls before it gives its core
	// away. Default 1000, or 2 when ranks share cores.
	Spin int `env:"MUSTER_SPIN"`
	// Yield is how many times a waiting call gives its core away before it
	// sleeps. Default 500.
	Yield int `env:"MUSTER_YIELD"`
	// RingBytes is the size of the buffer between two ranks of a node that talk
	// often. Default 524288 for a handful of ranks, else 131072.
	RingBytes int `env:"MUSTER_RING_BYTES"`
	// Rings is how many such buffers a rank may have for senders. Default 64,
	// fewer where shared memory is short; other senders use a common queue.
	Rings int `env:"MUSTER_RINGS"`
	// Channel is what network iwarp carries messages by: "rd" (one socket for all
	// ranks, reliable datagrams), "rc" (a connection to each rank that is talked to),
	// "hybrid" (datagrams, and connections to those few that exchange much), or "ud" (one
	// socket, unreliable datagrams with reliability above them). Default "hybrid".
	Channel string `env:"MUSTER_CHANNEL"`
	// MaxConnections is how many connections a rank has at most with channel hybrid.
	// Default 16.
	MaxConnections int `env:"MUSTER_MAX_CONNECTIONS"`
	// Eager is where short messages between hosts wait: "srq" (receive buffers that
	// all senders share), "rings" (the same, and a ring for each of the first senders
	// that send much, into which they write: memory for speed, on adapters), "few"
	// (rings, and a few receive buffers for each connection of network iwarp), or
	// "posted" (receive buffers that this rank posts, few or many as they are needed, in
	// place of those of the device). Default "srq".
	Eager string `env:"MUSTER_EAGER"`
	// NoProcessVM keeps the library from copying between processes by
	// process_vm_readv and process_vm_writev. Default false: it is used where
	// the system allows it, and elsewhere bytes are copied in and out through
	// shared memory. With Yama's ptrace_scope 1 a rank then permits the processes
	// of its user to reach its memory (PR_SET_PTRACER_ANY); true leaves that as it is.
	NoProcessVM bool `env:"MUSTER_NO_PROCESS_VM"`
	// NoMemfd puts shared memory into files under /dev/shm instead of memfd.
	// Default false.
	NoMemfd bool `env:"MUSTER_NO_MEMFD"`
	// Network is what carries messages between hosts: "ofi" (libfabric, any
	// provider), "ofi:PROVIDER" such as "ofi:tcp;ofi_rxm", "iwarp" (RDMA in software
	// over any Ethernet), or "none". Default: libfabric if the program was built with
	// it and the host has it, else iwarp; muster explain network tells.
	Network string `env:"MUSTER_NETWORK"`
	// Interface is the network interface between hosts, or its address or network. For
	// network iwarp it may be several, separated by commas: they are used together.
	// Default: chosen; muster explain network reports how.
	Interface string `env:"MUSTER_INTERFACE"`
	// NoSharedMemory sends messages over the network even between ranks of one
	// host. Default false.
	NoSharedMemory bool `env:"MUSTER_NO_SHARED_MEMORY"`
	// Encrypt makes what network iwarp sends unreadable to others, and protects all of it
	// against changes on the way: AES-GCM for datagrams, TLS 1.3 for connections. It costs
	// speed (docs/reference/security.md). Shared memory does not leave the host and is not encrypted.
	// Libfabric cannot encrypt, and is refused. All ranks need the same. Default off: messages
	// are authenticated and can be read. In the environment on or off.
	Encrypt bool `env:"MUSTER_ENCRYPT"`
	// RegisterCache is how many bytes of memory may stay registered with a
	// network adapter after use, in case they are used again. Default
	// 268435456; negative: none.
	RegisterCache int64 `env:"MUSTER_REGISTER_CACHE"`
	// Frequent says whether short messages, puts and gets use the program's own buffer where a
	// network adapter wants that registered: "auto" (once a buffer is used so often that
	// registering it saves more copying than it costs), "always" (from the first use, for
	// measuring) or "never" (always copied). Default auto. It has no effect on devices that
	// can send from any memory; muster explain tells.
	Frequent string `env:"MUSTER_FREQUENT"`
	// Strict lets network iwarp behave as an adapter does: memory must be registered to be
	// sent from or received into, and registering locks its pages. It is for tests and
	// benchmarks of what saves registrations, and saves nothing itself. Default false.
	Strict bool `env:"MUSTER_STRICT"`
	// BufferedLimit is how many bytes Bsend may hold for messages that are not
	// yet on their way. Default 67108864.
	BufferedLimit int64 `env:"MUSTER_BUFFERED_LIMIT"`
	// Collective names the algorithms of collectives, such as
	// "allreduce=ring,bcast=chain:segment=8192"; muster explain lists them. Where
	// one cannot serve a call, it is passed over. All ranks need the same. Default:
	// by cost.
	Collective string `env:"MUSTER_COLLECTIVE"`
	// Tuning is a file that says which algorithm is best where, as muster tune
	// writes it. All ranks need the same. Default: by cost.
	Tuning string `env:"MUSTER_TUNING"`
	// Profile shows what the job did when it ends: "text" prints it at rank 0, on
	// standard error; a name that ends in .json is a file that rank 0 writes. "arrivals"
	// tells instead when ranks came to collectives, "arrivals:FILE.svg" draws that too, and
	// "arrivals:FILE.json" writes it. All ranks need the same. Default: none. See also
	// [Profile] and muster run --profile.
	Profile string `env:"MUSTER_PROFILE"`
	// StartTimeout bounds each step of joining the job and of coming into
	// contact with another rank. Default 60s.
	StartTimeout time.Duration `env:"MUSTER_START_TIMEOUT"`
	// PeerTimeout is how long a rank may hear nothing from another one over network iwarp,
	// while something is under way to it, before calls fail. It is the same for all
	// channels. A network that is interrupted for less costs no more than that time. A rank
	// whose host says that its process has ended is given up after a second. Default 30s.
	PeerTimeout time.Duration `env:"MUSTER_PEER_TIMEOUT"`
}

// internalVars are set by the launcher for the library, not by users.
var internalVars = [...]string{"MUSTER_BOARD_FD", "MUSTER_LIFELINE_FD"}

// placeVars tell a process that no launcher has started its place in the job;
// package pmi reads them.
var placeVars = [...]string{"MUSTER_RANK", "MUSTER_SIZE", "MUSTER_ROOT", "MUSTER_KEY"}

// ConfigFromEnv reads a configuration from an environment as os.Environ gives
// it.
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
	return slices.Contains(internalVars[:], name) || slices.Contains(placeVars[:], name)
}

func fieldFor(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("env") == name {
			return v.Field(i), true
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
		n, err := strconv.ParseInt(val, 10, 64)
		if err != nil {
			return fmt.Errorf("want a whole number")
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
	switch c.Rendezvous {
	case "", "get", "put", "coop":
	default:
		return fmt.Errorf("mpi: Config.Rendezvous (MUSTER_RENDEZVOUS) is %q; want get, put or coop", c.Rendezvous)
	}
	switch c.Speculate {
	case "", "auto", "always", "never":
	default:
		return fmt.Errorf("mpi: Config.Speculate (MUSTER_SPECULATE) is %q; want auto, always or never", c.Speculate)
	}
	switch c.Frequent {
	case "", "auto", engine.FrequentAlways, engine.FrequentNever:
	default:
		return fmt.Errorf("mpi: Config.Frequent (MUSTER_FREQUENT) is %q; want auto, always or never%s", c.Frequent,
			didYouMean(c.Frequent, "auto", engine.FrequentAlways, engine.FrequentNever))
	}
	switch c.Progress {
	case "", "polling", progressAsync:
	default:
		return fmt.Errorf("mpi: Config.Progress (MUSTER_PROGRESS) is %q; want polling or async%s", c.Progress,
			didYouMean(c.Progress, "polling", progressAsync))
	}
	switch c.Eager {
	case "", "srq", eagerRings, eagerFew, eagerPosted:
	default:
		return fmt.Errorf("mpi: Config.Eager (MUSTER_EAGER) is %q; want srq, rings, few or posted%s", c.Eager, didYouMean(c.Eager, "srq", eagerRings, eagerFew, eagerPosted))
	}
	if _, ok := channels[c.Channel]; !ok && c.Channel != channelUD {
		return fmt.Errorf("mpi: Config.Channel (MUSTER_CHANNEL) is %q; want hybrid, rd, rc or ud%s", c.Channel, didYouMean(c.Channel, "hybrid", "rd", "rc", channelUD))
	}
	if err := checkNetwork(c.Network); err != nil {
		return err
	}
	if err := checkProfile(c.Profile); err != nil {
		return err
	}
	if _, err := forced(c.Collective); err != nil {
		return fmt.Errorf("mpi: Config.Collective (MUSTER_COLLECTIVE) is %q: %w", c.Collective, err)
	}
	if c.StartTimeout < 0 || c.PeerTimeout < 0 {
		return fmt.Errorf("mpi: Config.StartTimeout (MUSTER_START_TIMEOUT) is %v and PeerTimeout (MUSTER_PEER_TIMEOUT) %v; neither can be negative", c.StartTimeout, c.PeerTimeout)
	}
	if c.EagerLimit < 0 || c.Credit < 0 || c.Spin < 0 || c.Yield < 0 || c.RingBytes < 0 || c.Rings < 0 || c.BufferedLimit < 0 || c.MaxConnections < 0 {
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
)

const (
	settingOn  = "on"
	settingOff = "off"
)

// encryptText is Encrypt as it is set in the environment.
func (c *Config) encryptText() string {
	if c.Encrypt {
		return settingOn
	}
	return settingOff
}

// peerTimeout is PeerTimeout, or the usual one.
func (c *Config) peerTimeout() time.Duration {
	if c.PeerTimeout == 0 {
		return 30 * time.Second
	}
	return c.PeerTimeout
}

// credit is Credit, or the usual one.
func (c *Config) credit() int64 {
	if c.Credit == 0 {
		return 8 << 20
	}
	return c.Credit
}

func (c *Config) rings() int {
	if c.Eager == eagerRings || c.Eager == eagerFew {
		return ringPeers
	}
	return 0
}

// progressAsync is the Config.Progress with a thread of its own.
const progressAsync = "async"

// didYouMean suggests the word that is nearest, if one is near.
func didYouMean(got string, words ...string) string {
	for _, w := range words {
		if editDistance(strings.ToLower(got), w) <= len(w)/3 {
			return fmt.Sprintf("; did you mean %s?", w)
		}
	}
	return ""
}

// unknownVariable suggests the name that is nearest.
func unknownVariable(name string) error {
	best, dist := "", 1<<30
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		known := t.Field(i).Tag.Get("env")
		if d := editDistance(name[len("MUSTER_"):], known[len("MUSTER_"):]); d < dist {
			best, dist = known, d
		}
	}
	if dist <= len(name)/4 {
		return fmt.Errorf("mpi: environment: there is no setting %s; did you mean %s? Unset it or correct it", name, best)
	}
	return fmt.Errorf("mpi: environment: there is no setting %s; the settings are the fields of mpi.Config (go doc mpi.Config)", name)
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
