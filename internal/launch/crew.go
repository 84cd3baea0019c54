package launch

// The ranks of one machine: all of a local job, or those of an agent.
//
//	newCrew     creates the board, the core binding, the environment
//	start       starts one rank after the other: socket, pipes, process; two pollers
//	            serve all of them (poll.go)
//	signalAll, rows, pulse    while they run
//	drain       waits for the last lines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// crewSpec describes the ranks of a crew and the handlers of their output and events.
type crewSpec struct {
	ranks          []int // ascending
	size           int   // of the whole job
	programs       []Program
	env            []string
	bind           Bind
	within         Domain
	reportBindings bool
	server         *pmi.Server

	// stdin returns the input of rank 0, if it is in this crew. nil: none.
	stdin func(theirs *files) (*os.File, error)
	// file returns the file that a stream goes to without a pipe, or nil. It may be
	// nil.
	file func(isStderr bool) *os.File
	// lines returns the function that receives a rank's lines.
	lines func(rank int, isStderr bool) func(text []byte)
	// post receives events: a rank has started or exited.
	post func(event)
	// notice receives messages about harmless errors.
	notice func(text string)
}

type crew struct {
	crewSpec
	forker    *forker
	board     *pmi.Board // nil: failures are noticed late and stuck jobs are not reported
	boardFile *os.File
	lifeline  *lifeline
	null      *os.File
	placement placement
	jobEnv    []string
	rankEnv   []string // of the rank that is being started
	control   poller   // PMI and exits
	output    poller   // apart from control, because a reader of the output may be slow
	members   []member
	foreign   foreignWatch

	restoreGC func() // nil: unchanged

	lock sync.Mutex // protects alive of the members
}

type member struct {
	rank     int
	proc     process
	alive    bool
	lifeline *os.File // see lifeline.go
	crew     *crew
	conn     conn         // of its PMI client
	session  *pmi.Session // nil after an error
}

// data serves the PMI client of the rank.
func (m *member) data(text []byte) {
	m.crew.foreign.end()
	if m.session == nil {
		return
	}
	if err := m.session.Feed(text); err != nil {
		m.session = nil
		m.end(err)
		m.conn.hangUp()
	}
}

// end reports an error, except that the process has ended, which its exit status explains:
// a process that exits with an unread answer resets the connection.
func (m *member) end(err error) {
	if err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		m.crew.notice(fmt.Sprintf("rank %d: %v", m.rank, err))
	}
}

// handleExit posts an event when the process has exited.
func (m *member) handleExit(end ending) {
	detach(m.lifeline)
	m.crew.lock.Lock()
	m.alive = false
	m.crew.lock.Unlock()
	m.crew.foreign.settle()
	m.crew.post(event{exited: true, rank: m.rank, end: end})
}

// outputReader forwards an output stream of a rank.
type outputReader struct {
	crew     *crew
	rank     int
	isStderr bool
	lineBuffer
}

func (r *outputReader) data(text []byte) {
	if r.write == nil { // most ranks of a large job print nothing
		r.write = r.crew.lines(r.rank, r.isStderr)
	}
	r.feed(text)
}

func (r *outputReader) end(error) { r.lineBuffer.end() }

func newCrew(spec crewSpec) (*crew, error) {
	c := &crew{crewSpec: spec, members: make([]member, len(spec.ranks))}
	checked := -1
	for i, rank := range spec.ranks {
		c.members[i].rank, c.members[i].crew = rank, c
		if p := programOf(spec.programs, rank); p != checked {
			if err := checkLibrary(spec.programs[p].Prog, spec.size, append(slices.Clone(spec.env), spec.programs[p].Env...)); err != nil {
				return nil, err
			}
			checked = p
		}
	}
	var err error
	if c.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	if board, file, err := pmi.CreateBoard(spec.size); err == nil {
		c.board, c.boardFile = board, file
	}
	m := thisMachine()
	c.placement = plan(m, len(spec.ranks), spec.bind, spec.within)
	if spec.reportBindings {
		c.notice(c.placement.report(m, spec.ranks))
	}
	c.lifeline = newLifeline()
	c.jobEnv = jobEnv(spec.env, spec.size, len(spec.ranks), c.placement.gomaxprocs, spec.server.JobID(), c.board != nil, c.lifeline != nil)
	c.forker = newForker()
	c.control, c.output = newPoller(), newPoller()
	return c, nil
}

// close releases all resources. All ranks must have exited.
func (c *crew) close() {
	if c.restoreGC != nil {
		c.restoreGC()
	}
	c.foreign.end()
	c.forker.close()
	c.control.close()
	c.output.close()
	c.null.Close()
	c.lifeline.close()
	if c.board != nil {
		c.board.Close()
		c.boardFile.Close()
	}
}

// manyMembers is the number of ranks from which the launcher collects garbage early. The start
// of a rank and its requests leave some kilobytes of it, and the runtime would only collect
// at 4 MB. manyGC is the growth in percent; a cycle takes less than a millisecond, and the
// start of a process takes longer. What is left of the start is returned to the system after
// trimAfter, when the ranks have joined on most machines.
const (
	manyMembers = 64
	manyGC      = 10
	trimAfter   = 5 * time.Second
)

// start starts one rank after the other. If one cannot be started, start returns the
// error, and the ranks before it keep running.
func (c *crew) start() error {
	if len(c.members) > manyMembers {
		was := debug.SetGCPercent(manyGC)
		trim := time.AfterFunc(trimAfter, debug.FreeOSMemory)
		c.restoreGC = func() {
			trim.Stop()
			debug.SetGCPercent(was)
		}
	}
	for i := range c.members {
		m := &c.members[i]
		if err := c.startRank(m, i); err != nil {
			return fmt.Errorf("rank %d of %d: %w", m.rank, c.size, explainStart(err))
		}
	}
	c.foreign.begin(c)
	return nil
}

func (c *crew) startRank(m *member, local int) error {
	var theirs files
	defer theirs.close()
	p := &c.programs[programOf(c.programs, m.rank)]
	c.rankEnv = rankEnv(c.rankEnv, c.jobEnv, p.Env, m.rank, local)
	spec := &rankSpec{rank: m.rank, prog: p.Prog, args: append([]string{p.Prog}, p.Args...),
		env: c.rankEnv, dir: p.Dir, stdin: c.null, board: c.boardFile, lifeline: c.lifeline.end()}
	if c.placement.bind != nil {
		spec.cores = c.placement.bind[local]
	}
	ours, their, err := socketPair()
	if err != nil {
		return fmt.Errorf("create its socket: %w", err)
	}
	m.conn = c.control.open(ours)
	m.session = c.server.Session(m.rank, m.conn)
	spec.pmi = theirs.add(os.NewFile(uintptr(their), "launcher"))
	if spec.stdout, err = c.outputFile(m, false, &theirs); err == nil {
		spec.stderr, err = c.outputFile(m, true, &theirs)
	}
	if err == nil && m.rank == 0 && c.stdin != nil {
		spec.stdin, err = c.stdin(&theirs)
	}
	if err == nil && spec.stdin == nil {
		spec.stdin = c.null
	}
	if err == nil {
		m.proc, err = c.forker.start(spec)
	}
	if err != nil {
		m.conn.close()
		detach(spec.lifeline)
		return err
	}
	c.lock.Lock()
	m.alive, m.lifeline = true, spec.lifeline
	c.lock.Unlock()
	c.post(event{started: true, rank: m.rank, pid: m.proc.pid()})
	err = m.conn.watch(m)
	c.control.await(m.proc, m.conn, m)
	return err
}

// outputFile returns the write end of a pipe for a rank, unless the stream goes to a
// file directly.
func (c *crew) outputFile(m *member, isStderr bool, theirs *files) (*os.File, error) {
	if c.file != nil {
		if f := c.file(isStderr); f != nil {
			return f, nil
		}
	}
	ours, their, err := outputPipe()
	if err == nil {
		theirs.add(their)
		pipe := c.output.open(ours)
		if err = pipe.watch(&outputReader{crew: c, rank: m.rank, isStderr: isStderr}); err != nil {
			pipe.close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create its output pipe: %w", err)
	}
	return their, nil
}

func (c *crew) signalAll(sig syscall.Signal) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for i := range c.members {
		if m := &c.members[i]; m.alive {
			m.proc.signal(sig)
		}
	}
}

// markDead writes the failure of ranks of one host to the board.
func (c *crew) markDead(ranks spans, host, status string) {
	for rank := range ranks.all() {
		c.board.MarkDead(pmi.Death{Rank: rank, Host: host, Status: status})
	}
}

// evict kills those of the given ranks that run here and have not exited after a while:
// the others go on without them.
func (c *crew) evict(ranks spans, after time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for i := range c.members {
		if m := &c.members[i]; m.alive && ranks.has(m.rank) {
			time.AfterFunc(after, func() {
				c.lock.Lock()
				defer c.lock.Unlock()
				if m.alive {
					m.proc.signal(syscall.SIGKILL)
				}
			})
		}
	}
}

func (c *crew) living() (n int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for i := range c.members {
		if c.members[i].alive {
			n++
		}
	}
	return n
}

func (c *crew) isAlive(rank int) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	i, _ := slices.BinarySearch(c.ranks, rank)
	return c.members[i].alive
}

// rows returns the board rows of this crew's ranks.
func (c *crew) rows() (rows []pmi.Row) {
	if c.board == nil {
		return nil
	}
	for i := range c.members {
		rows = append(rows, c.board.Row(c.ranks[i]))
	}
	return rows
}

// states returns the rows together with the kernel's state of each process, and of its threads
// if these are wanted: for each of them two files have to be read.
func (c *crew) states(threads bool) (rows []rankRow) {
	for i, r := range c.rows() {
		pid := r.PID
		if m := &c.members[i]; pid == 0 && c.isAlive(m.rank) {
			pid = m.proc.pid() // it has not joined
		}
		row := rankRow{Row: r}
		row.process, row.resident = stateOf(pid)
		if threads {
			row.kernel = kernelWaits(pid)
		}
		row.counters, row.counted = c.board.Metrics(r.Rank)
		rows = append(rows, row)
	}
	return rows
}

func (c *crew) pulse() pulse {
	p := pulseOf(c.rows(), c.isAlive)
	p.noticed = c.countNoticed()
	return p
}

// countNoticed returns the number of ranks that have noticed a failure.
func (c *crew) countNoticed() (n int) {
	for i := range c.members {
		if c.board.HasNoticed(c.ranks[i]) {
			n++
		}
	}
	return n
}

// outputTimeout limits how long the launcher reads output after the last rank has
// exited: child processes of ranks may still hold the pipes open.
const outputTimeout = 200 * time.Millisecond

// drain waits for the last lines of output.
func (c *crew) drain() { c.output.drain(outputTimeout) }

// inputFile returns the standard input for rank 0. The launcher reads a terminal itself
// and copies it, because the kernel stops processes outside the foreground group, such as
// ranks, that read from a terminal. A launcher in the background must not read it either.
func inputFile(in io.Reader, theirs *files) (*os.File, error) {
	in = usableInput(in)
	if in == nil {
		return nil, nil
	}
	if f, ok := in.(*os.File); ok && !isTerminal(f.Fd()) {
		return f, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create its input pipe: %w", err)
	}
	go func() {
		io.Copy(write, in) // ends with the input, or when rank 0 no longer reads
		write.Close()
	}()
	return theirs.add(read), nil
}

// usableInput returns nil if there is no input, or if this process must not read it.
func usableInput(in io.Reader) io.Reader {
	if f, ok := in.(*os.File); ok && (f == nil || isTerminal(f.Fd()) && !inForeground(f.Fd())) {
		return nil
	}
	return in
}

// files collects the child's ends of pipes and sockets, which are closed together once
// the child has inherited them.
type files struct{ list []*os.File }

func (f *files) add(file *os.File) *os.File {
	f.list = append(f.list, file)
	return file
}

func (f *files) close() {
	for _, file := range f.list {
		file.Close()
	}
}

func explainStart(err error) error {
	if errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("%w: each rank needs five descriptors of the launcher; raise the limit with ulimit -n", err)
	}
	if errors.Is(err, syscall.EAGAIN) {
		return fmt.Errorf("%w: raise the limit on processes with ulimit -u, or the pids limit of the container", err)
	}
	return err
}
