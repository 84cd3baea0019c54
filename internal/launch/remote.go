package launch

// The backend for several hosts, on the launcher's side: one agent per host, connected by
// a tree. Frames from the agents become events of the job, calls to its PMI server, and
// output. Requests of the job become frames for all hosts.
//
// The start has several steps: start the agents; when all are ready, send them the job;
// they start their ranks and report them. A failure on one host ends the job.

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// jobSpec is the body of frameJob: the data that agents need to start ranks.
type jobSpec struct {
	JobID          string
	Mapping        string
	Size           int
	Programs       []Program
	Copies         []int // the file of each program, if they are copied
	Env            []string
	Bind           Bind
	Within         Domain
	ReportBindings bool
	Stdin          bool
	Pulse          time.Duration // interval of progress reports; 0: never
	Grace          time.Duration
	Keep           bool // agents keep the values that their ranks put
	Fetch          Fetch
}

type remoteBackend struct {
	job      *job
	cfg      *Config
	forker   *forker
	key      string
	branches []*branch
	out      *inbox[remoteOutput]
	printed  chan struct{} // closed when all output is written
	stdin    *window

	mu      sync.Mutex
	hosts   []remoteHost
	ready   int
	drained int
	settled chan struct{} // closed when every host is drained or lost
	asked   int64         // the last number of frameAskRows
	fetches lookups
	answers chan rowsAnswer
	begun   bool // the job was sent to the agents
	written int  // output frames
	closing bool

	// Of print: how much of the file from rank 0 was written, and the first error.
	fetchedBytes int
	fetchErr     error
}

// keepFrom is the number of ranks above which agents keep the values that their ranks put.
// Below it the launcher stores all of them, a few megabytes, so that a request takes one
// way to the launcher and back.
const keepFrom = 4096

type remoteHost struct {
	ready, drained, lost bool
	pulse                pulse
}

type remoteOutput struct {
	host     uint32
	rank     int // -1: a message of the agent itself
	isStderr bool
	text     []byte
	file     bool // a piece of the file that rank 0 has written
}

type rowsAnswer struct {
	number int64
	host   int
	rows   []rankRow
}

func newRemoteBackend(j *job) (*remoteBackend, error) {
	cfg := j.cfg
	b := &remoteBackend{
		job: j, cfg: cfg, key: newKey(),
		out: newInbox[remoteOutput](), printed: make(chan struct{}), stdin: newWindow(),
		hosts: make([]remoteHost, len(cfg.Hosts)), settled: make(chan struct{}),
		answers: make(chan rowsAnswer, len(cfg.Hosts)),
	}
	// A host counts as making progress until it reports otherwise.
	for i := range b.hosts {
		b.hosts[i].pulse.moving = true
	}
	j.server = pmi.NewServer(pmi.ServerConfig{
		Size: cfg.Ranks, Mapping: pmi.FormatMapping(cfg.layout.host), Event: j.pmiEvent,
		Released: func() { b.toAll(frameRelease, nil) },
		Fetch:    b.fetch,
		Answer:   j.answerRank,
	})
	b.forker = newForker()
	go b.print()
	return b, nil
}

// newKey returns the random key that an agent must repeat to identify itself.
func newKey() string {
	var bits [16]byte
	rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

// start starts the first level of agents. This machine needs no remote shell, unless the
// user has set RSH. Its agent is always started from here, because its name may mean
// another machine on another host.
func (b *remoteBackend) start() {
	base := assignment{RSH: b.cfg.Remote.RSH, AgentPath: b.cfg.Remote.AgentPath, Width: b.cfg.Remote.TreeWidth, Ping: b.cfg.Remote.pingEvery}
	if b.cfg.Remote.Retry {
		base.RetryFor = b.cfg.Limits.Start
	}
	var direct, others []hostRef
	for i, h := range b.cfg.Hosts {
		ref := hostRef{i, h.Name}
		if b.cfg.Remote.RSH == nil && isThisMachine(h.Name) {
			direct = append(direct, ref)
		} else {
			others = append(others, ref)
		}
	}
	if base.RSH == nil {
		base.RSH = strings.Fields(defaultRSH)
	}
	start := func(part []hostRef, direct bool) {
		a := base
		a.Host, a.Share = part[0], part[1:]
		br := startBranch(b, b.forker, b.key, a, direct)
		b.job.log.Info("starting agent", "host", a.Host.Name, "command", br.shell(), "hosts", len(part))
		b.mu.Lock()
		b.branches = append(b.branches, br)
		b.mu.Unlock()
	}
	for _, h := range direct {
		start([]hostRef{h}, true)
	}
	for _, part := range shares(others, b.cfg.Remote.TreeWidth) {
		start(part, false)
	}
}

func isThisMachine(name string) bool {
	return name == "localhost" || name == "127.0.0.1" || name == "::1" || name == hostname()
}

// all returns the branches so far.
func (b *remoteBackend) all() []*branch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.branches
}

func (b *remoteBackend) toAll(kind frameKind, body []byte) {
	for _, br := range b.all() {
		br.send(frame{kind, everyHost, body})
	}
}

func (b *remoteBackend) toHost(host uint32, kind frameKind, body []byte) {
	for _, br := range b.all() {
		if br.reaches(host) {
			br.send(frame{kind, host, body})
			return
		}
	}
}

// fromBelow handles a frame. It runs on the goroutine of a branch and must not block.
func (b *remoteBackend) fromBelow(br *branch, f frame) {
	if int(f.host) >= len(b.hosts) {
		return
	}
	if err := b.take(br, f); err != nil {
		b.job.post(event{lost: fmt.Sprintf("its agent sent an invalid frame (kind %d): %v", f.kind, err), host: int(f.host)})
	}
}

func (b *remoteBackend) take(br *branch, f frame) error {
	host := int(f.host)
	server := b.job.server
	switch f.kind {
	case frameReport:
		return b.report(br, f.body)
	case frameLost:
		b.hostLost(host, string(f.body))
	case frameRefused:
		b.job.post(event{failed: fmt.Errorf("launch: host %s: %s", b.cfg.Hosts[host].Name, f.body)})
	case frameExited:
		rank, end, err := readExited(f.body)
		if err != nil {
			return err
		}
		return b.aboutRank(host, rank, event{exited: true, rank: rank, end: end})
	case frameEvent:
		e, err := readEvent(f.body)
		if err == nil {
			server.Report(e)
		}
		return err
	case frameOutput:
		rank, isStderr, text, err := readOutput(f.body)
		if err == nil && rank >= 0 {
			b.out.put(remoteOutput{host: f.host, rank: rank, isStderr: isStderr, text: text})
		}
		return err
	case frameValues:
		values, err := readValues(f.body)
		server.Merge(values)
		return err
	case frameGet:
		number, key, err := readGet(f.body)
		server.Lookup(key, func(value string, ok bool) {
			br.send(frame{frameAnswer, f.host, answerBody(number, value, ok)})
		})
		return err
	case frameFetched:
		return b.fetches.answer(f.body)
	case frameStdinOK:
		n, err := readCount(f.body)
		if n == 0 {
			b.stdin.close()
		}
		b.stdin.acknowledge(int(n))
		return err
	case frameRows:
		number, rows, err := readRows(f.body, time.Now().UnixNano())
		select {
		case b.answers <- rowsAnswer{number, host, rows}:
		default: // the request has timed out
		}
		return err
	case framePulse:
		p, err := readPulse(f.body)
		b.mu.Lock()
		b.hosts[host].pulse = p
		b.mu.Unlock()
		return err
	case frameNotice:
		b.out.put(remoteOutput{host: f.host, rank: -1, text: f.body})
	case frameFile:
		b.out.put(remoteOutput{host: f.host, text: f.body, file: true})
	}
	return nil
}

// aboutRank posts an event of a rank if the rank runs on that host.
func (b *remoteBackend) aboutRank(host, rank int, e event) error {
	if rank < 0 || rank >= b.cfg.Ranks || b.cfg.layout.host[rank] != host {
		return fmt.Errorf("it reports rank %d, which does not run there", rank)
	}
	b.job.post(e)
	return nil
}

// agentReady counts the ready agents and sends them the job when all are ready.
func (b *remoteBackend) agentReady(host int) {
	b.mu.Lock()
	again := b.hosts[host].ready
	b.hosts[host].ready = true
	if !again {
		b.ready++
	}
	all := !again && b.ready == len(b.hosts)
	b.begun = b.begun || all
	b.mu.Unlock()
	if !all {
		return
	}
	spec := jobSpec{
		JobID: b.job.server.JobID(), Mapping: pmi.FormatMapping(b.cfg.layout.host), Size: b.cfg.Ranks, Keep: b.cfg.Ranks > keepFrom,
		Programs: b.cfg.Programs, Env: exportEnv(b.cfg.Env, b.cfg.ExtraEnv),
		Bind: b.cfg.Bind, Within: b.cfg.MapBy.Within, ReportBindings: b.cfg.ReportBindings, Grace: b.job.ending.grace.quiet(b.cfg.Ranks), Fetch: b.cfg.Remote.Fetch,
	}
	in := usableInput(b.cfg.Stdin)
	spec.Stdin = in != nil
	if b.cfg.Limits.Stuck > 0 {
		spec.Pulse = stuckInterval(b.cfg.Limits.Stuck)
	}
	var files []string
	if b.cfg.Remote.Copy {
		files, spec.Copies = copiedFiles(b.cfg.Programs)
	}
	body, err := json.Marshal(spec)
	if err != nil {
		b.job.post(event{failed: fmt.Errorf("launch: %w", err)})
		return
	}
	go func() { // the branch must go on reading
		if err := b.sendPrograms(files); err != nil {
			b.job.post(event{failed: err})
			return
		}
		for _, br := range b.all() {
			for _, h := range br.hosts() {
				br.send(frame{frameBlock, uint32(h.Index), blockBody(spansOf(b.cfg.layout.ranks[h.Index]...))})
			}
		}
		b.toAll(frameJob, body)
		b.job.post(event{sent: true})
		if in != nil {
			b.readStdin(in)
		}
	}()
}

// readStdin sends the launcher's input to rank 0, as fast as rank 0 reads it.
func (b *remoteBackend) readStdin(in io.Reader) {
	host := uint32(b.cfg.layout.host[0])
	buf := make([]byte, 32<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if !b.stdin.take(n) {
				return
			}
			b.toHost(host, frameStdin, append([]byte(nil), buf[:n]...))
		}
		if err != nil {
			b.toHost(host, frameStdin, nil)
			return
		}
	}
}

// print writes output and reports to the host how much was written.
func (b *remoteBackend) print() {
	defer close(b.printed)
	writers := map[[2]int]func([]byte){}
	for {
		o, ok := b.out.take()
		if !ok {
			return
		}
		if o.file {
			b.writeFetched(o.text)
			b.wrote(o)
			continue
		}
		if o.rank < 0 {
			for line := range strings.SplitSeq(string(o.text), "\n") {
				b.job.notice(fmt.Sprintf("host %s: %s", b.cfg.Hosts[o.host].Name, line))
			}
			continue
		}
		stream := [2]int{o.rank, 0}
		if o.isStderr {
			stream[1] = 1
		}
		write := writers[stream]
		if write == nil {
			write = b.job.console.lines(o.rank, o.isStderr)
			writers[stream] = write
		}
		write(o.text)
		b.wrote(o)
	}
}

// wrote reports to the host that its output was written.
func (b *remoteBackend) wrote(o remoteOutput) {
	b.mu.Lock()
	b.written++
	b.mu.Unlock()
	b.toHost(o.host, frameOutputOK, numbersBody(int64(len(o.text))))
}

func (b *remoteBackend) branchEnded(br *branch, why string) {
	for i, h := range br.hosts() {
		text := why
		if i > 0 {
			text = fmt.Sprintf("it was reached through %s, which was lost", br.assign.Host.Name)
		}
		b.hostLost(h.Index, text)
	}
}

// hostLost reports a lost host to the job once, unless all its output has arrived.
func (b *remoteBackend) hostLost(host int, why string) {
	b.mu.Lock()
	h := &b.hosts[host]
	known := h.lost || b.closing
	drained := h.drained
	h.lost = true
	h.pulse = pulse{}
	ready := h.ready
	b.mu.Unlock()
	if known {
		return
	}
	switch {
	case !ready:
		b.job.post(event{failed: fmt.Errorf("launch: host %s: %s", b.cfg.Hosts[host].Name, why)})
	case !drained:
		b.job.post(event{lost: why, host: host})
	}
	b.hostDrained(host)
}

// hostDrained records that a host sends no more output.
func (b *remoteBackend) hostDrained(host int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := &b.hosts[host]; !h.drained {
		h.drained = true
		if b.drained++; b.drained == len(b.hosts) {
			close(b.settled)
		}
	}
}

func (b *remoteBackend) host(rank int) string { return b.cfg.Hosts[b.cfg.layout.host[rank]].Name }

func (b *remoteBackend) signalAll(sig syscall.Signal) {
	b.toAll(frameSignal, signalBody(sig))
	if sig == sigStop {
		// The launcher will stop itself next.
		for _, br := range b.all() {
			br.flush(200 * time.Millisecond)
		}
	}
}

func (b *remoteBackend) markDead(ranks spans, host, status string) {
	b.toAll(frameDeath, deathBody(ranks, host, status))
}

// pulse returns the sum of the hosts' last reports.
func (b *remoteBackend) pulse() (all pulse, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.hosts {
		all.add(b.hosts[i].pulse)
	}
	return all, true
}

// countNoticed returns the sum of the hosts' last reports.
func (b *remoteBackend) countNoticed() int {
	p, _ := b.pulse()
	return p.noticed
}

// rowsTimeout limits how long a report waits for hosts.
const rowsTimeout = time.Second

// rows requests the board rows from all agents.
func (b *remoteBackend) rows(threads bool) ([]rankRow, []string) {
	rows := make([]rankRow, b.cfg.Ranks)
	for rank := range rows {
		rows[rank].Rank = rank
	}
	b.mu.Lock()
	b.asked++
	number := b.asked
	missing := map[int]bool{}
	for i := range b.hosts {
		if b.hosts[i].ready && !b.hosts[i].lost {
			missing[i] = true
		}
	}
	b.mu.Unlock()
	for len(b.answers) > 0 {
		<-b.answers // late answers to an earlier request
	}
	b.toAll(frameAskRows, askRowsBody(number, threads))
	late := time.After(rowsTimeout)
	for len(missing) > 0 {
		select {
		case a := <-b.answers:
			if a.number != number || !missing[a.host] {
				continue
			}
			delete(missing, a.host)
			for _, r := range a.rows {
				if r.Rank >= 0 && r.Rank < len(rows) {
					rows[r.Rank] = r
				}
			}
		case <-late:
			var silent []string
			for i, h := range b.cfg.Hosts {
				if missing[i] {
					silent = append(silent, h.Name)
				}
			}
			return rows, silent
		}
	}
	return rows, nil
}

// drainTimeout is for agents that do not report the end of their output although all
// their ranks have exited.
const drainTimeout = 5 * time.Second

// drain waits until all output has arrived and is written. A slow reader loses no output
// as long as it makes progress.
func (b *remoteBackend) drain() {
	state := func() (begun bool, written int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.begun, b.written
	}
	begun, seen := state()
	for waiting := begun && b.job.startErr == nil; waiting; {
		select {
		case <-b.settled:
			waiting = false
		case <-time.After(drainTimeout):
			_, now := state()
			waiting = now != seen || b.out.size() > 0
			seen = now
		}
	}
	b.out.close()
	<-b.printed
}

// close ends the agents and thereby the ranks that still run.
func (b *remoteBackend) close() {
	b.mu.Lock()
	b.closing = true
	b.mu.Unlock()
	b.stdin.close()
	until := time.Now().Add(closeTimeout + b.job.ending.grace.quiet(b.cfg.Ranks))
	for _, br := range b.all() {
		br.close()
	}
	for _, br := range b.all() {
		br.awaitClosed(until)
	}
	b.forker.close()
}

// closeTimeout is the time for agents to exit by themselves.
const closeTimeout = 3 * time.Second
