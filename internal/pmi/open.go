package pmi

// Open determines the launcher from the environment, in this order:
//
//	PMI_FD     an open socket to the launcher: muster run, mpiexec.hydra, srun --mpi=pmi2
//	PMI_PORT   a TCP address of the launcher: mpiexec.hydra -pmi-port
//	MUSTER_RANK, MUSTER_SIZE, MUSTER_ROOT, MUSTER_KEY
//	           no launcher: rank 0 listens, see rendezvous.go
//	PMIX_RANK  mpirun.openmpi, srun --mpi=pmix, if built with tag pmix
//	(none)     an error under a launcher that Muster does not support; otherwise this
//	           process is a world of one rank

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/muster-mpi/muster/internal/pmix"
)

// Variables that `muster run` sets for the ranks. The first five are those of Hydra,
// which C programs built with MPICH also read.
const (
	EnvFD        = "PMI_FD"
	EnvRank      = "PMI_RANK"
	EnvSize      = "PMI_SIZE"
	EnvLocalRank = "MPI_LOCALRANKID"
	EnvLocalSize = "MPI_LOCALNRANKS"
	EnvJob       = "PMI_JOBID"
	EnvBoard     = "MUSTER_BOARD_FD"
	EnvLifeline  = "MUSTER_LIFELINE_FD"
	EnvSpares    = "MUSTER_SPARES"  // how many of the last ranks are spares
	EnvRespawn   = "MUSTER_RESPAWN" // the launcher starts processes in place of failed ranks

	envPort = "PMI_PORT"
	envID   = "PMI_ID"
)

// Open joins the job that this process belongs to. getenv is os.Getenv, or a replacement
// in tests. terms is what this rank needs in common with the others.
func Open(ctx context.Context, getenv func(string) string, terms Terms) (Client, error) {
	switch {
	case getenv(EnvFD) != "":
		return openFD(ctx, getenv, terms)
	case getenv(envPort) != "":
		return openPort(ctx, getenv)
	}
	if p, given, err := readStaticJob(getenv); given {
		if err != nil {
			return nil, err
		}
		return openStatic(ctx, p, terms)
	}
	if pmix.Built && getenv(envPMIxName) != "" && getenv(envPMIxRank) != "" {
		return openPMIx(ctx, getenv)
	}
	if err := findForeignLauncher(getenv); err != nil {
		return nil, err
	}
	return NewLocal(1)[0], nil
}

// JobName identifies the job that the environment makes this process a rank of, among
// those that the process may join. It is empty if there is none. It may contain the key of
// the job.
func JobName(getenv func(string) string) string {
	for _, name := range []string{EnvFD, envPort, EnvRoot, envPMIxRank} {
		switch value := getenv(name); {
		case value == "":
		case name == EnvRoot: // the port may be that of an earlier job
			return name + "=" + value + " " + getenv(EnvKey)
		default:
			return name + "=" + value
		}
	}
	return ""
}

func openFD(ctx context.Context, getenv func(string) string, terms Terms) (Client, error) {
	secret, err := readSecret(getenv)
	if err != nil {
		return nil, err
	}
	fd, err := envNumber(getenv, EnvFD, 0, 1<<20)
	if err != nil {
		return nil, err
	}
	rank, size, err := envRankAndSize(getenv)
	if err != nil {
		return nil, err
	}
	conn, err := inheritSocket(fd)
	if err != nil {
		return nil, fmt.Errorf("pmi: %s=%d: %w; a child process of a rank cannot join the job: unset %s for it", EnvFD, fd, err, EnvFD)
	}
	board, err := openBoardFromEnv(getenv, size)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if getenv(EnvBoard) == "" && getenv(EnvLifeline) == "" {
		terms = Terms{} // another launcher: Slurm reads at most 63 bytes of init
	}
	c, err := joinWire(ctx, conn, rank, size, board, secret, terms)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.lifeline = getenv(EnvLifeline)
	return c, nil
}

// openPort connects to a launcher that listens. After this process has sent its number
// from PMI_ID, the launcher sends the rank and the size in three lines.
func openPort(ctx context.Context, getenv func(string) string) (Client, error) {
	secret, err := readSecret(getenv)
	if err != nil {
		return nil, err
	}
	addr := getenv(envPort)
	id, err := envNumber(getenv, envID, 0, maxMapped)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: joinTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("pmi: connect to the launcher at %s=%s: %w", envPort, addr, err)
	}
	facts, err := greetPort(conn, id)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("pmi: the launcher at %s=%s: %w", envPort, addr, err)
	}
	return joinOrClose(ctx, conn, facts.rank, facts.size, nil, secret, Terms{})
}

type portFacts struct{ rank, size int }

func greetPort(conn net.Conn, id int) (portFacts, error) {
	facts := portFacts{rank: -1}
	conn.SetDeadline(time.Now().Add(joinTimeout))
	defer conn.SetDeadline(time.Time{})
	if _, err := conn.Write(appendMessage(nil, "initack", "pmiid", strconv.Itoa(id))); err != nil {
		return facts, err
	}
	// The last line is "debug". The launcher sends nothing after it, so the reader's
	// buffer is empty when it is discarded.
	lines := lineReader{r: conn}
	for {
		line, err := lines.next()
		if err != nil {
			return facts, err
		}
		m, err := parseMessage(string(line))
		if err != nil {
			return facts, fmt.Errorf("it sent %.80q: %w", line, err)
		}
		switch {
		case m.cmd == "initack" && m.number("rc", 0) == 0:
		case m.cmd != "set":
			return facts, fmt.Errorf("it answered %.80q to PMI_ID %d", line, id)
		case m.get("size") != "":
			facts.size = m.number("size", 0)
		case m.get("rank") != "":
			facts.rank = m.number("rank", -1)
		case m.get("debug") != "":
			if facts.rank < 0 || facts.rank >= facts.size {
				return facts, fmt.Errorf("it gave rank %d of %d", facts.rank, facts.size)
			}
			return facts, nil
		}
	}
}

func joinOrClose(ctx context.Context, conn wireConn, rank, size int, board *Board, secret []byte, terms Terms) (Client, error) {
	c, err := joinWire(ctx, conn, rank, size, board, secret, terms)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func envRankAndSize(getenv func(string) string) (rank, size int, err error) {
	if size, err = envNumber(getenv, EnvSize, 1, maxMapped); err != nil {
		return 0, 0, err
	}
	rank, err = envNumber(getenv, EnvRank, 0, size-1)
	return rank, size, err
}

func envNumber(getenv func(string) string, name string, lowest, highest int) (int, error) {
	text := getenv(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("pmi: the launcher set %s=%q; it should be a number from %d to %d", name, text, lowest, highest)
	}
	return n, nil
}
