package launch

// The ranks of one machine: all of a local job, or those of an agent.
//
//	newCrew     the board, the plan of cores, the environment
//	start       one rank after the other: socket, pipes, process, and the
//	            goroutines that serve it
//	signalAll, markDead, rows, pulse    while they run
//	drain       the last lines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// crewSpec says which ranks they are and what becomes of what they do.
type crewSpec struct {
	block
	size   int // of the whole job
	prog   string
	args   []string // without the program
	env    []string
	dir    string
	bind   Bind
	server *pmi.Server

	// stdin gives rank 0 its input, if it is one of them. nil: none.
	stdin func(theirs *files) (*os.File, error)
	// file is where a stream goes directly, past any pipe. It may be nil, and
	// may give nil.
	file func(isStderr bool) *os.File
	// lines gives the taker of a rank's lines.
	lines func(rank int, isStderr bool) func(text []byte)
	// post takes events: a rank was started, has ended.
	post func(event)
	// say takes what goes wrong without harm.
	say func(text string)
}

type crew struct {
	crewSpec
	forker    *forker
	board     *pmi.Board // nil: ranks learn of deaths late and stuck jobs are not told, still a job
	boardFile *os.File
	life      *lifeline
	null      *os.File
	place     placement
	jobEnv    []string
	members   []member

	lock sync.Mutex // of the members' alive
}

type member struct {
	rank   int
	proc   process
	alive  bool
	life   *os.File      // see lifeline.go
	served chan struct{} // closed when its PMI socket has ended
	output sync.WaitGroup
	pipes  []*os.File
}

func newCrew(spec crewSpec) (*crew, error) {
	c := &crew{crewSpec: spec, members: make([]member, spec.Count)}
	for i := range c.members {
		c.members[i].rank, c.members[i].served = spec.First+i, make(chan struct{})
	}
	var err error
	if c.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	if board, file, err := pmi.CreateBoard(spec.size); err == nil {
		c.board, c.boardFile = board, file
	}
	c.place = plan(thisMachine(), spec.Count, spec.bind)
	c.life = newLifeline()
	c.jobEnv = jobEnv(spec.env, spec.size, spec.Count, c.place.gomaxprocs, spec.server.JobID(), c.board != nil, c.life != nil)
	c.forker = newForker()
	return c, nil
}

// close may be called when all ranks have ended.
func (c *crew) close() {
	c.forker.close()
	c.null.Close()
	c.life.close()
	if c.board != nil {
		c.board.Close()
		c.boardFile.Close()
	}
}

// start starts one rank after the other. If one cannot be started, those before
// it run and the error tells about it.
func (c *crew) start() error {
	for i := range c.members {
		m := &c.members[i]
		if err := c.startRank(m, i); err != nil {
			return fmt.Errorf("rank %d of %d: %w", m.rank, c.size, explainStart(err))
		}
	}
	return nil
}

func (c *crew) startRank(m *member, local int) error {
	var theirs files
	defer theirs.close()
	spec := &rankSpec{rank: m.rank, prog: c.prog, args: append([]string{c.prog}, c.args...),
		env: rankEnv(c.jobEnv, m.rank, local), dir: c.dir, stdin: c.null, board: c.boardFile, life: c.life.end()}
	if c.place.bind != nil {
		spec.cores = c.place.bind[local]
	}
	ours, their, err := socketPair()
	if err != nil {
		return fmt.Errorf("making its socket: %w", err)
	}
	conn := os.NewFile(uintptr(ours), "rank")
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
		conn.Close()
		untie(spec.life)
		return err
	}
	c.lock.Lock()
	m.alive, m.life = true, spec.life
	c.lock.Unlock()
	c.post(event{started: true, rank: m.rank, pid: m.proc.pid()})
	go c.serve(m, conn)
	go c.await(m)
	return nil
}

// outputFile gives the end of a pipe for a rank to write to, unless the stream
// goes to a file directly.
func (c *crew) outputFile(m *member, isStderr bool, theirs *files) (*os.File, error) {
	if c.file != nil {
		if f := c.file(isStderr); f != nil {
			return f, nil
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making its output pipe: %w", err)
	}
	m.pipes = append(m.pipes, read)
	m.output.Go(func() {
		copyLines(c.lines(m.rank, isStderr), &pipeEnd{f: read})
		read.Close()
	})
	return theirs.add(write), nil
}

// serve answers a rank's PMI client until its socket ends.
func (c *crew) serve(m *member, conn *os.File) {
	defer close(m.served)
	defer conn.Close()
	// A process that ended with an answer unread has reset the connection.
	if err := c.server.Serve(m.rank, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		c.say(fmt.Sprintf("rank %d: %v", m.rank, err))
	}
}

// socketPatience is how long the end of a process waits for the end of its
// socket, so that an abort that was sent is heard before the death that follows
// it. Only a process that the rank has left behind can hold the socket open.
const socketPatience = 20 * time.Millisecond

// await turns the end of a process into an event.
func (c *crew) await(m *member) {
	end := m.proc.wait()
	untie(m.life)
	c.lock.Lock()
	m.alive = false
	c.lock.Unlock()
	select {
	case <-m.served:
	case <-time.After(socketPatience):
	}
	c.post(event{exited: true, rank: m.rank, end: end})
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
	return c.members[rank-c.First].alive
}

// rows are those of these ranks.
func (c *crew) rows() (rows []pmi.Row) {
	if c.board == nil {
		return nil
	}
	for i := range c.members {
		rows = append(rows, c.board.Row(c.First+i))
	}
	return rows
}

// states adds what the kernel says about the processes.
func (c *crew) states() (rows []rankRow) {
	for i, r := range c.rows() {
		pid := r.PID
		if m := &c.members[i]; pid == 0 && c.isAlive(m.rank) {
			pid = m.proc.pid() // it has not joined
		}
		rows = append(rows, rankRow{r, stateOf(pid)})
	}
	return rows
}

func (c *crew) pulse() pulse {
	p := pulseOf(c.rows(), c.isAlive)
	p.learnt = c.learnt()
	return p
}

// learnt counts the ranks that know of a death.
func (c *crew) learnt() (n int) {
	for i := range c.members {
		if c.board.HasLearnt(c.First + i) {
			n++
		}
	}
	return n
}

// outputPatience is how long the launcher listens after the last rank has
// ended, to what still holds its pipes: processes that ranks have left behind.
const outputPatience = 200 * time.Millisecond

// drain waits for the last lines.
func (c *crew) drain() {
	for i := range c.members {
		for _, p := range c.members[i].pipes {
			p.SetReadDeadline(time.Now().Add(outputPatience))
		}
	}
	for i := range c.members {
		if m := &c.members[i]; m.proc != nil {
			m.output.Wait()
		}
	}
}

// inputFile gives rank 0 what the launcher reads. A terminal is read by the
// launcher, because the kernel stops processes that read from it outside the
// foreground group, where the ranks are; a launcher in the background must not
// read it either.
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
		return nil, fmt.Errorf("making its input pipe: %w", err)
	}
	go func() {
		io.Copy(write, in) // ends with the input, or when rank 0 no longer reads
		write.Close()
	}()
	return theirs.add(read), nil
}

// usableInput is nil if there is nothing to be read, or nothing that may be.
func usableInput(in io.Reader) io.Reader {
	if f, ok := in.(*os.File); ok && (f == nil || isTerminal(f.Fd()) && !inForeground(f.Fd())) {
		return nil
	}
	return in
}

// files are closed together: the ends that belong to a child once it has them.
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
