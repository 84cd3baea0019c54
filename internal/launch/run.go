// From Config to running ranks:
//
//	Run            makes server, board and backend, starts all ranks, runs the
//	               loop of job.go, drains the output, reports the cause
//	startRank      one rank: socket, pipes, process, and the goroutines that
//	               serve it
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// Run starts the ranks, waits for their end and says how it was. An error means
// that the job could not be started; ranks that had been are ended.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.complete(); err != nil {
		return Result{}, err
	}
	backend := newLocalBackend(cfg.Ranks)
	defer backend.close()
	j := newJob(&cfg, backend)

	board, boardFile, err := pmi.CreateBoard(cfg.Ranks)
	if err == nil {
		j.board = board
		defer board.Close()
		defer boardFile.Close()
	} // without a board ranks learn of deaths late and stuck jobs are not told: still a job
	j.server = pmi.NewServer(pmi.ServerConfig{Size: cfg.Ranks, Mapping: backend.mapping(), Event: j.pmiEvent})

	place := plan(thisMachine(), cfg.Ranks, cfg.Bind)
	s := starter{job: j, place: place, board: boardFile,
		env:  jobEnv(cfg.Env, cfg.Ranks, place.gomaxprocs, j.server.JobID(), board != nil),
		args: append([]string{cfg.Prog}, cfg.Args...)}
	if err := s.openNull(); err != nil {
		return Result{}, err
	}
	defer s.null.Close()
	startErr := s.startAll()
	if startErr != nil {
		j.endNow()
	}
	j.loop(ctx)
	j.drain()
	if startErr != nil {
		return Result{Status: 1}, startErr
	}
	j.report()
	return j.result(), nil
}

// starter holds what starting needs and the running job does not.
type starter struct {
	job   *job
	place placement
	board *os.File
	null  *os.File
	env   []string
	args  []string
}

func (s *starter) openNull() (err error) {
	if s.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	return nil
}

// startAll starts one rank after the other; the job takes their events
// meanwhile through a channel that has room for them.
func (s *starter) startAll() error {
	for rank := range s.job.cfg.Ranks {
		if err := s.startRank(rank); err != nil {
			return fmt.Errorf("launch: rank %d of %d: %w", rank, s.job.cfg.Ranks, explainStart(err))
		}
	}
	return nil
}

func (s *starter) startRank(rank int) error {
	j := s.job
	var theirs files
	defer theirs.close()
	spec := &rankSpec{rank: rank, prog: j.cfg.Prog, args: s.args, env: rankEnv(s.env, rank), dir: j.cfg.Dir,
		stdin: s.null, board: s.board}
	if s.place.bind != nil {
		spec.cores = s.place.bind[rank]
	}
	ours, their, err := socketPair()
	if err != nil {
		return fmt.Errorf("making its socket: %w", err)
	}
	conn := os.NewFile(uintptr(ours), "rank")
	spec.pmi = theirs.add(os.NewFile(uintptr(their), "launcher"))

	r := &j.ranks[rank]
	r.output.Add(2)
	if spec.stdout, err = s.outputFile(r, rank, j.cfg.Stdout, j.stdout, &theirs); err == nil {
		spec.stderr, err = s.outputFile(r, rank, j.cfg.Stderr, j.stderr, &theirs)
	}
	if err == nil && rank == 0 {
		spec.stdin, err = s.inputFile(&theirs)
	}
	if err == nil {
		r.proc, err = j.backend.start(spec)
	}
	if err != nil {
		conn.Close()
		return err
	}
	r.alive = true
	j.living++
	go j.serve(rank, conn)
	go j.await(rank)
	return nil
}

// outputFile gives the end of a pipe for a rank to write to. A lone rank
// without labels gets the file itself, so that it may even be a terminal to it.
func (s *starter) outputFile(r *rankState, rank int, w io.Writer, to *sink, theirs *files) (*os.File, error) {
	var label []byte
	if s.job.cfg.labelled() {
		label = rankLabel(rank, s.job.cfg.Ranks)
	} else if f, ok := w.(*os.File); ok && s.job.cfg.Ranks == 1 {
		r.output.Done()
		return f, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		r.output.Done()
		return nil, fmt.Errorf("making its output pipe: %w", err)
	}
	r.pipes = append(r.pipes, read)
	go func() {
		defer r.output.Done()
		copyLines(to, label, &pipeEnd{f: read})
		read.Close()
	}()
	return theirs.add(write), nil
}

// inputFile gives rank 0 the launcher's input. A terminal is read by the
// launcher, because the kernel stops processes that read from it outside the
// foreground group, where the ranks are; a launcher in the background must not
// read it either.
func (s *starter) inputFile(theirs *files) (*os.File, error) {
	in := s.job.cfg.Stdin
	if in == nil {
		return s.null, nil
	}
	if f, ok := in.(*os.File); ok {
		if f == nil {
			return s.null, nil
		}
		if !isTerminal(f.Fd()) {
			return f, nil
		}
		if !inForeground(f.Fd()) {
			return s.null, nil
		}
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
		return fmt.Errorf("%w: each rank needs four descriptors of the launcher; raise the limit with ulimit -n", err)
	}
	if errors.Is(err, syscall.EAGAIN) {
		return fmt.Errorf("%w: raise the limit on processes with ulimit -u, or the pids limit of the container", err)
	}
	return err
}

// outputPatience is how long the launcher listens after the last rank has
// ended, to what still holds its pipes: processes that ranks have left behind.
const outputPatience = 200 * time.Millisecond

// drain waits for the last lines.
func (j *job) drain() {
	var all sync.WaitGroup
	for i := range j.ranks {
		r := &j.ranks[i]
		for _, p := range r.pipes {
			p.SetReadDeadline(time.Now().Add(outputPatience))
		}
		if r.proc != nil {
			all.Go(r.output.Wait)
		}
	}
	all.Wait()
}
