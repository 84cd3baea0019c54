package pmi

// The launcher's end of PMI-1: a session per rank parses the requests from the rank's
// socket (session.go) and answers them from one store.
//
//	init, get_maxes, get_appnum, get_universe_size, get_my_kvsname
//	put, get              the store, which includes the mapping of ranks to nodes
//	barrier_in            answered for all when the last rank has entered
//	finalize, abort       the two ways to leave
//
// C programs built with MPICH use the same requests, and no others unless they spawn
// processes, which the server rejects.
//
// A job on several hosts has a server on each: server_tree.go.

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"syscall"
)

// ServerConfig describes the job to serve.
type ServerConfig struct {
	// Size is the number of ranks.
	Size int
	// JobID names the job, without spaces. Default: a new unique name.
	JobID string
	// Mapping is the value of PMI_process_mapping. Default: all ranks on one
	// node.
	Mapping string
	// App, if not nil, returns the number of a rank's program (MPI_APPNUM, MPI-4.1
	// section 11.10.3). Default: 0.
	App func(rank int) int
	// Event, if not nil, receives the events of ranks. It is called from the goroutine
	// that serves the rank, before the rank gets its answer.
	Event func(Event)

	// Serves is the number of ranks that this server serves itself, if the job has
	// others. Default: all.
	Serves int
	// Up is the parent in a tree of servers. Default: this server is the root.
	Up Upstream
	// Released, if not nil, is called at the root when all ranks have entered a fence,
	// to notify the child servers.
	Released func()
	// Keep makes a server with a parent keep the values of its own ranks whose keys
	// name the rank, as those of Muster do. The root fetches them when they are
	// requested. Default: the root stores all values.
	Keep bool
	// Fetch, if not nil, requests a value at the root from the server of a rank. done is
	// called once with the answer, from any goroutine.
	Fetch func(rank int, key string, done func(value string, ok bool))
	// Answer, if not nil, answers the requests of ranks to the launcher itself (jobs.go), at
	// the root. It must not block. done is called once, from any goroutine.
	Answer func(request string, done func(answer string, ok bool))
}

// Phase is the state of a rank's PMI client.
type Phase uint8

const (
	PhaseStarted   Phase = iota // has sent nothing: maybe not a message passing program
	PhaseJoined                 // has sent init
	PhaseFinalized              // has sent finalize
	PhaseAborted                // has sent abort
)

// Event is a change of phase, or the entering of a fence.
type Event struct {
	Rank  int
	Phase Phase
	Fence bool   // the rank waits in a fence for the others
	Nth   int    // of Fence: the number of fences before it
	Code  int    // PhaseAborted: the requested exit status
	Why   string // PhaseAborted: the reason, if given
	// Host and Terms are what a rank declares when it joins.
	Host, Terms string
	// Unreachable is set if the rank cannot reach another one, Peer, over the network.
	Unreachable bool
	Peer        int
	// Refused is why the job cannot run with this rank. The rank waits for the end of the
	// job.
	Refused string
}

// Server serves one job.
type Server struct {
	cfg ServerConfig

	mu      sync.Mutex
	values  map[string]string
	fresh   []Pair // put since the last fence, for the parent
	phase   []Phase
	fenced  []*serverConn // own ranks that wait in the fence
	remote  int           // ranks of other servers reported to wait in it
	entered int           // own ranks, and ranks of complete servers, in the fence
	passed  int           // completed fences
	asked   map[string][]func(value string, ok bool)
	counts  ServerCounts
	first   *Party // the first rank that joined
	differ  bool   // a difference has been reported
}

type serverConn struct {
	rank     int
	mu       sync.Mutex
	w        io.Writer
	spawning bool // the lines of a spawn request follow
}

// Limits announced to clients: the values of Hydra, which C clients expect.
const (
	serverNameMax  = 256
	serverKeyMax   = 64
	serverValueMax = 1024
)

// NewServer returns a server. Serve connects its ranks.
func NewServer(cfg ServerConfig) *Server {
	if cfg.JobID == "" {
		cfg.JobID = newJobID("muster")
	}
	if cfg.Mapping == "" {
		cfg.Mapping = fmt.Sprintf("(vector,(0,1,%d))", cfg.Size)
	}
	if cfg.Serves == 0 && cfg.Released == nil {
		cfg.Serves = cfg.Size
	}
	return &Server{
		cfg:    cfg,
		values: map[string]string{mappingKey: cfg.Mapping},
		phase:  make([]Phase, cfg.Size),
		asked:  map[string][]func(string, bool){},
	}
}

// JobID returns the job's name.
func (s *Server) JobID() string { return s.cfg.JobID }

// Phase returns the phase of a rank.
func (s *Server) Phase(rank int) Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase[rank]
}

// FenceWaiters returns the number of ranks that wait in a fence.
func (s *Server) FenceWaiters() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fenced) + s.remote
}

// FencesPassed returns the number of fences that all ranks have passed.
func (s *Server) FencesPassed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passed
}

// Serve answers a rank until the rank closes its end, which is not an error.
func (s *Server) Serve(rank int, conn io.ReadWriter) error {
	session := s.Session(rank, conn)
	buf := make([]byte, 2048)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if err := session.Feed(buf[:n]); errors.Is(err, syscall.EPIPE) {
				return nil // the process has ended, which its exit status explains
			} else if err != nil {
				return err
			}
			continue
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("pmi: read from rank %d: %w", rank, err)
		}
	}
}

func (s *Server) answer(c *serverConn, m *message) error {
	switch m.cmd {
	case "init":
		rc := "0"
		if m.get("pmi_version") != "1" {
			rc = "-1"
		} else {
			party := readTermsOf(c.rank, m)
			if s.Phase(c.rank) != PhaseStarted {
				s.notify(Event{Rank: c.rank, Phase: PhaseJoined, Refused: joinedTwice(&party)})
				return nil
			}
			s.reach(c.rank, PhaseJoined, Event{Host: party.Host, Terms: party.Terms})
			if !s.compare(party) {
				return nil // the job ends, and its first error is the useful one
			}
		}
		answer := []string{"pmi_version", "1", "pmi_subversion", "1", "rc", rc}
		if m.get(fieldHost) != "" { // MPICH gets only what it expects
			answer = append(answer, fieldTerms, compared)
		}
		return c.reply("response_to_init", answer...)
	case "get_maxes":
		return c.reply("maxes", "kvsname_max", strconv.Itoa(serverNameMax),
			"keylen_max", strconv.Itoa(serverKeyMax), "vallen_max", strconv.Itoa(serverValueMax))
	case "get_appnum":
		app := 0
		if s.cfg.App != nil {
			app = s.cfg.App(c.rank)
		}
		return c.reply("appnum", "appnum", strconv.Itoa(app))
	case "get_universe_size":
		return c.reply("universe_size", "size", strconv.Itoa(s.cfg.Size))
	case "get_my_kvsname":
		return c.reply("my_kvsname", "kvsname", s.cfg.JobID)
	case "put":
		return s.put(c, m)
	case "get":
		return s.get(c, m)
	case "barrier_in":
		return s.fence(c)
	case "finalize":
		s.reach(c.rank, PhaseFinalized, Event{})
		return c.reply("finalize_ack", "rc", "0")
	case "abort":
		why, _ := valueCode.DecodeString(m.get(abortWhy))
		s.reach(c.rank, PhaseAborted, Event{Code: m.number("exitcode", 1), Why: string(why)})
		return nil
	case launcherCommand:
		s.Lookup(launcherKey+m.get("request"), func(answer string, ok bool) {
			rc := "0"
			if !ok {
				rc = "-1"
			}
			c.reply(launcherAnswer, "rc", rc, "answer", answer)
		})
		return nil
	case unreachableCommand:
		if peer := m.number("rank", -1); peer >= 0 && peer < s.cfg.Size {
			s.notify(Event{Rank: c.rank, Phase: s.Phase(c.rank), Unreachable: true, Peer: peer})
		}
		return c.reply(unreachableAnswer, "rc", "0")
	case "spawn":
		c.spawning = true // rejected after its last line
		return nil
	case "publish_name", "unpublish_name", "lookup_name":
		return c.reply(m.cmd[:len(m.cmd)-len("_name")]+"_result", "info", "not_supported", "rc", "-1", "msg", "not_supported")
	}
	// Without an answer the client would wait for ever.
	return c.reply(m.cmd+"_result", "rc", "-1", "msg", "unknown_command")
}

// unreachableCommand is a request of Muster's own clients, and unreachableAnswer the answer.
const (
	unreachableCommand = "muster_unreachable"
	unreachableAnswer  = "muster_unreachable_result"
)

// abortWhy is the field of abort that carries Muster's reason, in base64. Other servers
// ignore unknown fields.
const abortWhy = "muster_why"

func (s *Server) reach(rank int, p Phase, e Event) {
	s.mu.Lock()
	s.phase[rank] = p
	s.mu.Unlock()
	e.Rank, e.Phase = rank, p
	s.notify(e)
}

func (s *Server) notify(e Event) {
	if s.cfg.Event != nil {
		s.cfg.Event(e)
	}
}

func (s *Server) put(c *serverConn, m *message) error {
	key, value := m.get("key"), m.get("value")
	bad := ""
	s.mu.Lock()
	switch _, twice := s.values[key]; {
	case key == "" || len(key) > serverKeyMax:
		bad = "bad_key"
	case len(value) > serverValueMax:
		bad = "value_too_long"
	case twice:
		bad = "duplicate_key"
	default:
		s.values[key] = value
		if s.cfg.Up != nil && !(s.cfg.Keep && keyRank(key) == c.rank) {
			s.fresh = append(s.fresh, Pair{key, value})
		}
	}
	s.mu.Unlock()
	if bad != "" {
		return c.reply("put_result", "rc", "-1", "msg", bad)
	}
	return c.reply("put_result", "rc", "0", "msg", "success")
}

func (s *Server) get(c *serverConn, m *message) error {
	// The answer may come later, from the parent. If the client is gone by then, the next
	// read detects it.
	s.Lookup(m.get("key"), func(value string, ok bool) {
		if ok {
			c.reply("get_result", "rc", "0", "msg", "success", "value", value)
		} else {
			c.reply("get_result", "rc", "-1", "msg", "no_such_key", "value", "unknown")
		}
	})
	return nil
}

func (s *Server) fence(c *serverConn) error {
	s.mu.Lock()
	entered := Event{Rank: c.rank, Phase: PhaseJoined, Fence: true, Nth: s.passed}
	s.fenced = append(s.fenced, c)
	here := len(s.fenced) == s.cfg.Serves
	s.mu.Unlock()
	if s.cfg.Up != nil {
		// The values of the ranks must be at the root before the last rank is reported.
		if here {
			s.cfg.Up.Values(s.takeFresh())
		}
		s.notify(entered)
		return nil
	}
	if s.enter(1) {
		return s.Release()
	}
	s.notify(entered)
	return nil
}

// Release completes the fence: every rank of this server gets its answer.
func (s *Server) Release() error {
	s.mu.Lock()
	all := s.fenced
	s.fenced, s.remote, s.entered = nil, 0, 0
	s.passed++
	s.mu.Unlock()
	if s.cfg.Released != nil {
		s.cfg.Released()
	}
	var first error
	for _, waiting := range all {
		if err := waiting.reply("barrier_out", "rc", "0"); err != nil && first == nil {
			first = fmt.Errorf("to rank %d: %w", waiting.rank, err)
		}
	}
	return first
}

func (c *serverConn) reply(cmd string, fields ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.w.Write(appendMessage(nil, cmd, fields...))
	return err
}
