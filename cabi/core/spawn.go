package core

// Starting processes (MPI-4.1 section 11.8). The root decodes its arguments before anything else and
// says to the others how many error codes there are, or that the arguments are wrong: only it knows
// either.

import (
	"context"
	"errors"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/mpi"
)

func processes() map[string]handler {
	return map[string]handler{
		"Comm_spawn":          (*Process).commSpawn,
		"Comm_spawn_multiple": (*Process).commSpawnMultiple,
		"Comm_get_parent":     (*Process).commGetParent,
		"Comm_disconnect":     freeComm((*mpi.Comm).Disconnect),
	}
}

// spawnCommand is a command of a call, and how many processes the program asked for at most.
type spawnCommand struct {
	mpi.SpawnCommand
	most int
}

func (p *Process) commSpawn(a *args) error {
	return p.spawn(a, 4, func() ([]spawnCommand, error) {
		s, err := p.spawnCommand(a.text(0), a.addr(1), a.int(2), a.handle(3))
		return []spawnCommand{s}, err
	})
}

func (p *Process) commSpawnMultiple(a *args) error {
	return p.spawn(a, 5, func() (list []spawnCommand, err error) {
		n := a.int(0)
		if n < 1 || a.addr(1) == 0 || a.addr(3) == 0 || a.addr(4) == 0 {
			return nil, errorf(errArg, "there are %d commands, or the array of commands, of numbers or of info objects is NULL", n)
		}
		commands, most, hints := memory[uintptr](a.addr(1), n), a.shorts(3, n), a.handles(4, n)
		argvs := make([]uintptr, n) // MPI_ARGVS_NULL
		if a.addr(2) != 0 {
			copy(argvs, memory[uintptr](a.addr(2), n))
		}
		for i := range n {
			s, err := p.spawnCommand(text(commands[i]), argvs[i], most[i], hints.at(i).get())
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
		return list, nil
	})
}

// spawnCommand returns a command, from the address of its arguments, which end with NULL, and the
// handle of an info object.
func (p *Process) spawnCommand(prog string, argv uintptr, most int, hints handle) (s spawnCommand, err error) {
	f, err := p.hints(hints)
	switch {
	case err != nil:
		return s, err
	case prog == "":
		return s, errorf(errArg, "the command is empty")
	case most < 1:
		return s, errorf(errArg, "%d processes of %s cannot be started", most, prog)
	}
	s.most = most
	s.SpawnCommand, err = f.spawnCommand(prog, most)
	s.Args = texts(argv)
	return s, err
}

// texts returns the strings of an array that ends with NULL.
func texts(addr uintptr) (list []string) {
	if addr == 0 {
		return nil
	}
	for ; *at[uintptr](addr) != 0; addr += uintptr(sizeOf[uintptr]()) {
		list = append(list, text(*at[uintptr](addr)))
	}
	return list
}

// spawn makes the call. From position i on, the parameters are root, communicator, new communicator and
// error codes.
func (p *Process) spawn(a *args, i int, decode func() ([]spawnCommand, error)) error {
	root, c := a.int(i), a.intra(i+1)
	if a.err != nil {
		return nil
	}
	var list []spawnCommand
	var wrong error
	if c.Rank() == root {
		list, wrong = decode()
	}
	started, err := shareStarted(c.Comm, root, list, wrong)
	if err != nil {
		return err
	}
	commands := make([]mpi.SpawnCommand, len(list))
	for k, s := range list {
		commands[k] = s.SpawnCommand
	}
	d, err := c.Spawn(context.Background(), root, commands...)
	if err != nil {
		clear(started)
	}
	p.setSpawnCodes(a.addr(i+3), started)
	if err != nil {
		return err
	}
	a.addComm(i+2, d, c)
	return nil
}

// shareStarted returns on all ranks, for each process that the root asks for, whether it is to be
// started: the key soft can ask for fewer. wrong is an error in the arguments of the root.
func shareStarted(c *mpi.Comm, root int, list []spawnCommand, wrong error) ([]bool, error) {
	var started []bool
	for _, s := range list {
		for k := range s.most {
			started = append(started, k < s.Ranks)
		}
	}
	n := []int{len(started)}
	if wrong != nil {
		n[0] = -1
	}
	if err := mpi.Bcast(c, n, root); err != nil {
		return nil, errors.Join(wrong, err)
	}
	switch {
	case wrong != nil:
		return nil, wrong
	case n[0] < 0:
		return nil, errorf(errSpawn, "the arguments of rank %d, the root, are wrong; its error says how", root)
	}
	if c.Rank() != root {
		started = make([]bool, n[0])
	}
	return started, mpi.Bcast(c, started, root)
}

// setSpawnCodes stores the error codes of processes, unless the program ignores them.
func (p *Process) setSpawnCodes(addr uintptr, started []bool) {
	if addr == 0 { // MPI_ERRCODES_IGNORE
		return
	}
	codes := memory[int32](addr, len(started))
	for k, ok := range started {
		codes[k] = 0
		if !ok {
			codes[k] = p.abi.numberFor(numberCode, int32(errSpawn))
		}
	}
}

// openParent makes the communicator to the processes that have started this one.
func (p *Process) openParent() {
	c := mpi.Parent(p.world.Comm())
	if c == nil {
		return
	}
	n := &comm{Comm: c, handler: p.retain(p.standard.unset), label: "MPI_COMM_PARENT"}
	n.handle = p.comms.add(n)
	p.abi.describeComm(n.handle, c)
	p.parent.Store(n)
}

// commGetParent is MPI_Comm_get_parent: MPI_COMM_NULL once the program has freed the communicator
// (MPI-4.1 section 11.8.2).
func (p *Process) commGetParent(a *args) error {
	h := commNull
	if c := p.parent.Load(); c != nil {
		h = c.handle
	}
	a.setHandle(0, h)
	return nil
}

// universeSize returns the value of MPI_UNIVERSE_SIZE. The launcher of Muster starts any number of
// processes, so that there is no value (MPI-4.1 section 11.10.1); others start no more than there are.
func (p *Process) universeSize() (n int, ok bool) {
	if cbinding.Get().Spawns(p.world) {
		return 0, false
	}
	return p.world.Comm().Size(), true
}
