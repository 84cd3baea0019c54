package mpi_test

// The programs of TestSpawn.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// spawnProgram is the prefix of these programs; the rest says what to do.
const spawnProgram = "spawn "

// spawnOf runs a program of TestSpawn.
func spawnOf(world *mpi.Comm, what string) error {
	if parent := mpi.Parent(world); parent != nil {
		return spawnedChild(world, parent, what)
	}
	switch word, _, _ := strings.Cut(what, " "); word {
	case "talk", "stay":
		return spawnAndTalk(world, what)
	case "cycles":
		_, count, _ := strings.Cut(what, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		return spawnCycles(world, n)
	case "ports":
		return meetAtPort(world)
	case "progress":
		return spawnProgress(world)
	case "far":
		return spawnFromOne(world, what)
	case "grandchild":
		inter, err := spawnSelf(world, 1, what)
		if err != nil {
			return err
		}
		return inter.Disconnect()
	case "root":
		if world.Rank() == 0 {
			time.AfterFunc(300*time.Millisecond, func() { os.Exit(9) })
		}
		_, err := world.Spawn(context.Background(), 0, mpi.SpawnCommand{Prog: "sleep", Args: []string{"100"}})
		return err
	case "die":
		return spawnToDeath(world, what)
	}
	// The others must not start.
	command := mpi.SpawnCommand{Prog: "/no/such/program"}
	switch what {
	case "early":
		command = mpi.SpawnCommand{Prog: "sh", Args: []string{"-c", "exit 3"}, Ranks: 2}
	case "never joins":
		command = mpi.SpawnCommand{Prog: "sh", Args: []string{"-c", "exit 0"}, Ranks: 2}
	}
	_, err := world.Spawn(context.Background(), world.Size()-1, command)
	if !errors.Is(err, mpi.ErrSpawn) {
		return fmt.Errorf("Spawn returned %w", err)
	}
	fmt.Printf("rank %d: %v\n", world.Rank(), err)
	return world.Barrier()
}

// meetAtPort divides the world into two groups, which join at a port of rank 1.
func meetAtPort(world *mpi.Comm) error {
	half := world.Size() / 2
	color := 0
	if world.Rank() >= half {
		color = 1
	}
	group, err := world.Split(color, 0)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var inter *mpi.Comm
	if color == 0 {
		port := ""
		if group.Rank() == 1 {
			if port, err = group.OpenPort(); err == nil {
				err = group.PublishName("meet", port)
			}
			if err != nil {
				return err
			}
		}
		if err := world.Barrier(); err != nil {
			return err
		}
		if inter, err = group.Accept(ctx, port, 1); err != nil {
			return err
		}
		if group.Rank() == 1 {
			if err := errors.Join(group.ClosePort(port), group.UnpublishName("meet")); err != nil {
				return err
			}
		}
	} else {
		if err := world.Barrier(); err != nil {
			return err
		}
		port, err := group.LookupName("meet")
		if err != nil {
			return err
		}
		wrong := "A" + port[1:]
		if port[0] == 'A' {
			wrong = "B" + port[1:]
		}
		if _, err := group.Connect(ctx, wrong, 0); !errors.Is(err, mpi.ErrPort) {
			return fmt.Errorf("Connect with a wrong key returned %w", err)
		}
		if inter, err = group.Connect(ctx, port, 0); err != nil {
			return err
		}
		defer func() {
			if _, err := group.Connect(ctx, port, 0); !errors.Is(err, mpi.ErrPort) {
				fmt.Println("Connect to a port that is closed returned", err)
				os.Exit(1)
			}
		}()
	}
	order := mpi.MergeLow
	if color == 1 {
		order = mpi.MergeHigh
	}
	if err := talkBetween(inter, order); err != nil {
		return err
	}
	fmt.Printf("rank %d has talked to %d ranks\n", world.Rank(), inter.RemoteSize())
	if err := inter.Disconnect(); err != nil {
		return err
	}
	return world.Barrier()
}

// spawnSelf starts this program again.
func spawnSelf(world *mpi.Comm, ranks int, what string) (*mpi.Comm, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return world.Spawn(context.Background(), 0, mpi.SpawnCommand{Prog: self, Ranks: ranks, Env: []string{programVar + "=" + spawnProgram + what}})
}

func spawnAndTalk(world *mpi.Comm, what string) error {
	children := 3
	if what == "stay" {
		children = 2
	}
	inter, err := spawnSelf(world, children, what)
	if err != nil {
		return err
	}
	if inter.RemoteSize() != children || inter.Rank() != world.Rank() {
		return fmt.Errorf("rank %d has rank %d in the inter-communicator, with %d remote ranks", world.Rank(), inter.Rank(), inter.RemoteSize())
	}
	if what != "stay" {
		if err := talkAcross(inter); err != nil {
			return err
		}
		if err := inter.Disconnect(); err != nil {
			return err
		}
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	fmt.Printf("parents of %d children are done\n", children)
	return nil
}

// spawnFromOne starts processes from rank 0 alone. All ranks of both jobs meet over the
// inter-communicator that only this rank has.
func spawnFromOne(world *mpi.Comm, what string) error {
	var bridge *mpi.Comm
	var err error
	if world.Rank() == 0 {
		if bridge, err = spawnSelf(world.Self(), 2, what); err != nil {
			return err
		}
	}
	if err := meetOver(world, bridge); err != nil {
		return err
	}
	if bridge != nil {
		if err := bridge.Disconnect(); err != nil {
			return err
		}
	}
	fmt.Printf("rank %d has met all children\n", world.Rank())
	return world.Barrier()
}

func meetOver(world, bridge *mpi.Comm) error {
	inter, err := world.IntercommCreate(0, bridge, 0, 9)
	if err != nil {
		return err
	}
	if world.Compare(inter) != mpi.Unequal {
		return errors.New("communicators of two jobs must be unequal")
	}
	if err := talkAcross(inter); err != nil {
		return err
	}
	return inter.Disconnect()
}

// talkAcross exchanges messages of several lengths between all ranks of two groups, and uses
// collectives of both.
func talkAcross(inter *mpi.Comm) error {
	if mpi.Parent(inter) != nil {
		return talkBetween(inter, mpi.MergeHigh)
	}
	return talkBetween(inter, mpi.MergeLow)
}

// talkBetween is talkAcross with the caller's position in the communicator of both groups.
func talkBetween(inter *mpi.Comm, order mpi.MergeOrder) error {
	for _, n := range []int{1, 1000, 300_000} {
		var reqs []mpi.Request
		in := make([][]int64, inter.RemoteSize())
		for r := range in {
			out := make([]int64, n)
			for i := range out {
				out[i] = int64(inter.Rank()*1000 + i)
			}
			in[r] = make([]int64, n)
			reqs = append(reqs, mpi.Isend(inter, out, r, 5), mpi.Irecv(inter, in[r], r, 5))
		}
		if err := mpi.WaitAll(reqs...); err != nil {
			return err
		}
		for r := range in {
			if in[r][0] != int64(r*1000) || in[r][n-1] != int64(r*1000+n-1) {
				return fmt.Errorf("the message of remote rank %d begins with %d", r, in[r][0])
			}
		}
	}
	ranks := make([]int, inter.RemoteSize())
	if err := mpi.Allgather(inter, []int{inter.Rank()}, ranks); err != nil {
		return err
	}
	if !slices.IsSorted(ranks) || ranks[len(ranks)-1] != len(ranks)-1 {
		return fmt.Errorf("Allgather returned %v", ranks)
	}
	all, err := inter.Merge(order)
	if err != nil {
		return err
	}
	sum := make([]int, 1)
	if err := mpi.Allreduce(all, []int{1}, sum, mpi.Sum[int]); err != nil {
		return err
	}
	if sum[0] != inter.RemoteSize()+inter.Size() {
		return fmt.Errorf("%d ranks are in the communicator of both groups", sum[0])
	}
	return all.Disconnect()
}

func spawnedChild(world, parent *mpi.Comm, what string) error {
	switch word, _, _ := strings.Cut(what, " "); word {
	case "talk":
		if err := talkAcross(parent); err != nil {
			return err
		}
		return parent.Disconnect()
	case "far":
		if err := meetOver(world, parent); err != nil {
			return err
		}
		return parent.Disconnect()
	case "cycles":
		return parent.Disconnect()
	case "progress":
		var b [1]byte
		if _, err := mpi.Recv(parent, b[:], 1, 1); err != nil {
			return err
		}
		if err := mpi.Send(parent, b[:], 0, 2); err != nil {
			return err
		}
		return mpi.Send(parent, b[:], 0, 3)
	case "grandchild":
		if err := parent.Disconnect(); err != nil {
			return err
		}
		inter, err := spawnSelf(world, 1, "third generation")
		if err != nil {
			return err
		}
		return inter.Disconnect()
	case "third":
		fmt.Println("the grandchild has met its parent")
		return parent.Disconnect()
	case "die":
		var b [1]byte
		_, err := mpi.Recv(parent, b[:], 0, 1) // rank 0 gets none
		if world.Rank() == 1 {
			os.Exit(7)
		}
		return err
	}
	return nil // Finalize disconnects
}

// spawnCycles starts and leaves jobs, and compares what this process and the launcher hold at the end with what they
// held after a quarter of the cycles.
func spawnCycles(world *mpi.Comm, cycles int) error {
	var before [2]holds
	for i := range cycles {
		inter, err := spawnSelf(world, 2, "cycles")
		if err != nil {
			return err
		}
		if err := inter.Disconnect(); err != nil {
			return err
		}
		if i == cycles/4 {
			before = [2]holds{holdsOf("self"), holdsOf(strconv.Itoa(os.Getppid()))}
		}
	}
	goroutines := runtime.NumGoroutine()
	var now [2]holds
	if !mpi.Eventually(20*time.Second, func() bool {
		now = [2]holds{holdsOf("self"), holdsOf(strconv.Itoa(os.Getppid()))}
		goroutines = runtime.NumGoroutine()
		return !now[0].exceed(before[0]) && !now[1].exceed(before[1]) && goroutines <= before[0].goroutines
	}) {
		return fmt.Errorf("after %d cycles this process and the launcher hold %+v and %d goroutines; after a quarter of them %+v", cycles, now, goroutines, before)
	}
	fmt.Printf("nothing is left: %+v, before %+v\n", now, before)
	return world.Barrier()
}

// holds is what a process holds.
type holds struct {
	files, mappings, children, kilobytes int
	goroutines                           int // of this process
}

// exceed reports whether a process holds more than before. The heap may have grown by garbage.
func (h holds) exceed(before holds) bool {
	const garbage = 32 << 10 // KB
	return h.files > before.files || h.children > before.children || h.mappings > before.mappings+20 || h.kilobytes > before.kilobytes+garbage
}

func holdsOf(process string) (h holds) {
	h.goroutines = runtime.NumGoroutine()
	files, _ := os.ReadDir("/proc/" + process + "/fd")
	h.files = len(files)
	maps, _ := os.ReadFile("/proc/" + process + "/maps")
	h.mappings = strings.Count(string(maps), "\n")
	tasks, _ := os.ReadDir("/proc/" + process + "/task")
	for _, task := range tasks {
		children, _ := os.ReadFile("/proc/" + process + "/task/" + task.Name() + "/children")
		h.children += len(strings.Fields(string(children)))
	}
	status, _ := os.ReadFile("/proc/" + process + "/status")
	if _, rest, ok := strings.Cut(string(status), "VmRSS:"); ok {
		fmt.Sscan(rest, &h.kilobytes)
	}
	return h
}

// spawnProgress waits for a child, whose message depends on the progress of the world: rank 1
// sends a long message to rank 0, which waits for the child meanwhile, before it releases the child.
func spawnProgress(world *mpi.Comm) error {
	inter, err := spawnSelf(world, 1, "progress")
	if err != nil {
		return err
	}
	long := make([]byte, 8<<20)
	var b [1]byte
	if world.Rank() == 1 {
		if err := mpi.Ssend(world, long, 0, 1); err != nil {
			return err
		}
		if err := mpi.Send(inter, b[:], 0, 1); err != nil {
			return err
		}
	} else {
		r := mpi.Irecv(world, long, 1, 1)
		if _, err := mpi.Recv(inter, b[:], 0, 2); err != nil {
			return err
		}
		reqs := []mpi.Request{r, mpi.Irecv(inter, b[:], 0, 3)}
		for range reqs { // of both jobs
			if _, _, err := mpi.WaitAny(reqs...); err != nil {
				return err
			}
		}
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	fmt.Printf("parents of %d children are done\n", inter.RemoteSize())
	return nil // Finalize disconnects
}

func spawnToDeath(world *mpi.Comm, what string) error {
	inter, err := spawnSelf(world, 2, what)
	if err != nil {
		return err
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	var b [1]byte
	if world.Rank() == 0 {
		if err := mpi.Send(inter, b[:], 1, 1); err != nil {
			return err
		}
	}
	if _, err := mpi.Recv(inter, b[:], mpi.AnySource, 1); !errors.Is(err, mpi.ErrProcAborted) {
		return fmt.Errorf("Recv from a job that died returned %w", err)
	}
	if err := inter.Disconnect(); err != nil {
		return err
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	fmt.Printf("rank %d goes on without its children\n", world.Rank())
	return nil
}
