package launch

// The processes of a rank are looked at while no rank of this host has used PMI. The first
// rank of each program stands for the others. A program that uses PMI does so within
// milliseconds, or after it has loaded its modules; one that does not is looked at for as
// long as it runs, and takes less than a hundredth of a core for that.

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/muster-mpi/muster/internal/needs"
	"github.com/muster-mpi/muster/internal/pmi"
)

// The interval is foreignInterval at first, later a part of the time since the start, and at
// most foreignLongest. MPI_Init of Open MPI takes some hundred milliseconds without its launcher.
const (
	foreignInterval = 20 * time.Millisecond
	foreignPart     = 64
	foreignLongest  = time.Second
)

// foreignWatch looks for the library of another MPI.
type foreignWatch struct {
	crew  *crew
	began time.Time

	mu    sync.Mutex
	ended bool
	timer *time.Timer // nil: it has not begun, or has ended
}

// begin is called when all ranks have been started.
func (w *foreignWatch) begin(c *crew) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crew, w.began = c, time.Now()
	if c.size > 1 && !w.ended {
		w.timer = time.AfterFunc(foreignInterval, w.look)
	}
}

// end ends it: a rank has used PMI, or the job ends.
func (w *foreignWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked()
}

func (w *foreignWatch) endLocked() {
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// settle waits for a look that is under way, so that its event precedes the exit of a rank.
func (w *foreignWatch) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

func (w *foreignWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	seen := -1
	for i := range w.crew.members {
		m := &w.crew.members[i]
		program := programOf(w.crew.programs, m.rank)
		if program == seen || !w.crew.isAlive(m.rank) {
			continue
		}
		seen = program
		if pid, lib := foreignLibrary(m.proc.pid()); lib != "" {
			w.endLocked()
			why := fmt.Sprintf("rank %d on %s: process %d (%s) has loaded %s", m.rank, hostname(), pid, commandOf(pid), foreignText(lib, w.crew.size))
			w.crew.post(event{rank: m.rank, pmi: &pmi.Event{Rank: m.rank, Refused: why}})
			return
		}
	}
	w.timer.Reset(min(max(foreignInterval, time.Since(w.began)/foreignPart), foreignLongest))
}

// foreignLibrary returns the path of such a library that a process or one of its descendants
// has mapped, and which process it is. The job of another launcher below it does not count.
func foreignLibrary(pid int) (int, string) {
	switch name, _, _ := bytes.Cut([]byte(commandOf(pid)), []byte(".")); string(name) {
	case "mpirun", "mpiexec", "orterun", "prterun", "muster":
		return 0, ""
	}
	if lib := mappedForeign(pid); lib != "" {
		return pid, lib
	}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range threads {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name())) // needs CONFIG_PROC_CHILDREN
		for child := range bytes.FieldsSeq(children) {
			n, err := strconv.Atoi(string(child))
			if err != nil {
				continue
			}
			if p, lib := foreignLibrary(n); lib != "" {
				return p, lib
			}
		}
	}
	return 0, ""
}

// mappedForeign returns the path of such a library that a process has mapped, unless it has
// Muster's: others then are Open MPI's for Fortran and C++, which call that.
func mappedForeign(pid int) (found string) {
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	for line := range bytes.Lines(maps) {
		i := bytes.IndexByte(line, '/')
		if i < 0 || !bytes.Contains(line[i:], []byte("/libmpi")) {
			continue
		}
		lib := string(bytes.TrimSpace(line[i:]))
		if needs.Ours(lib) {
			return ""
		}
		if isForeignMPI(path.Base(lib)) {
			found = lib
		}
	}
	return found
}

// commandOf returns the name of a process's command.
func commandOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return string(bytes.TrimSpace(name))
}
