package shm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

// Messages between processes.

// floodMessage is message k of a sender: its number, and bytes that depend on it.
func floodMessage(from, k int) []byte {
	b := pattern(from*1000+k, 8+sizes[(k*7+from)%len(sizes)]/2)
	binary.LittleEndian.PutUint64(b, uint64(k))
	return b
}

// playFlood makes all ranks send Count messages to rank 0, which has fewer rings than
// there are senders.
func playFlood(r *rank, p *part) error {
	if p.Index != 0 {
		for k := range p.Count {
			if err := r.send(0, floodMessage(p.Index, k)); err != nil {
				return err
			}
		}
		fmt.Println("end")
		return nil
	}
	next := make([]int, p.N)
	for range p.Count * (p.N - 1) {
		c, err := r.next()
		if err != nil {
			return fmt.Errorf("%w; arrived so far: %v", err, next)
		}
		from := int(c.Peer)
		if want := floodMessage(from, next[from]); !bytes.Equal(c.Data.Bytes(), want) {
			return fmt.Errorf("message %d of rank %d should arrive whole and in order, got %d bytes with number %d",
				next[from], from, c.Data.Len(), binary.LittleEndian.Uint64(c.Data.Bytes()))
		}
		next[from]++
	}
	fmt.Println("rings", len(r.dev.inbox.rings))
	fmt.Println("end")
	return nil
}

func TestManyProcessesSendToOne(t *testing.T) {
	c := start(t, part{Scenario: "flood", N: 5, Count: 600, Config: Config{Rings: 2}}, false)
	if got := c.line(0); got != "rings 2" {
		t.Errorf("four busy senders and two rings: the receiver prints %q, it should have opened both", got)
	}
	c.finish(60 * time.Second)
}

// playSleepers passes a ball around, and every rank waits as soon as it has nothing to do.
// A wait of seconds can only be a lost wake-up.
func playSleepers(r *rank, p *part) error {
	to := (p.Index + 1) % p.N
	for i := range p.Count {
		if p.Index == 0 {
			if err := r.send(to, []byte{byte(i)}); err != nil {
				return err
			}
		}
		for len(r.got) == 0 {
			if r.poll() > 0 {
				break
			}
			begin := time.Now()
			if err := r.cq.Wait(20 * time.Second); err != nil {
				return err
			}
			if took := time.Since(begin); took > 15*time.Second {
				return fmt.Errorf("round %d of %d: slept for %v although the ball has arrived: a lost wake-up", i, p.Count, took)
			}
		}
		ball := r.got[0].Data.Bytes()
		r.got = r.got[1:]
		if len(ball) != 1 || ball[0] != byte(i) {
			return fmt.Errorf("round %d: got %v", i, ball)
		}
		if p.Index != 0 {
			if err := r.send(to, ball); err != nil {
				return err
			}
		}
	}
	fmt.Println("end")
	return nil
}

func TestNoWakeUpIsLost(t *testing.T) {
	for _, n := range []int{2, 3} {
		start(t, part{Scenario: "sleepers", N: n, Count: 3000}, false).finish(80 * time.Second)
	}
}

// playAllToAll makes every rank send a few messages to every other, and prints the memory
// that took.
func playAllToAll(r *rank, p *part) error {
	for k := range p.Count {
		for j := range p.N {
			if to := (p.Index + j) % p.N; to != p.Index {
				if err := r.send(to, pattern(k, 100)); err != nil {
					return err
				}
			}
		}
	}
	for range p.Count * (p.N - 1) {
		if _, err := r.next(); err != nil {
			return err
		}
	}
	kb, err := memoryOf("Pss:")
	if err != nil {
		return err
	}
	shmem, err := memoryOf("Pss_Shmem:")
	if err != nil {
		return err
	}
	fmt.Println("pss", kb, shmem)
	fmt.Println("end")
	return nil
}

// memoryOf returns a line of /proc/self/smaps_rollup, in KB.
func memoryOf(name string) (int, error) {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("smaps_rollup has no %s", name)
}

func TestMemoryOfManyPeers(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes more memory than the ranks")
	}
	n := 32
	if testing.Short() {
		n = 12
	}
	c := start(t, part{Scenario: "alltoall", N: n, Count: 6}, false)
	most, mostShared := 0, 0
	for i := range n {
		var kb, shared int
		if _, err := fmt.Sscanf(c.line(i), "pss %d %d", &kb, &shared); err != nil {
			t.Fatal(err)
		}
		most, mostShared = max(most, kb), max(mostShared, shared)
	}
	c.finish(60 * time.Second)
	t.Logf("%d ranks, all exchanging messages: at most %d KB per rank, %d KB of them shared memory", n, most, mostShared)
	if mostShared > 600 {
		t.Errorf("segments take %d KB per rank; 600 KB should suffice for a rank without busy peers", mostShared)
	}
	if most > 4<<10 {
		t.Errorf("a rank takes %d KB; it should stay below 4 MB", most)
	}
}

// playKilled has its rank 1 killed by the test when rank 0 has printed that it is ready.
func playKilled(r *rank, p *part) error {
	if p.Index == 1 {
		region := pattern(1, 1<<20)
		mr, err := r.dev.Register(region, rdma.RemoteRead|rdma.Cooperative)
		if err != nil {
			return err
		}
		msg := binary.LittleEndian.AppendUint64(nil, mr.Base)
		if err := r.send(0, binary.LittleEndian.AppendUint64(msg, mr.RKey)); err != nil {
			return err
		}
		time.Sleep(time.Minute) // until it is killed
		return nil
	}
	c, err := r.next()
	if err != nil {
		return err
	}
	base, key := binary.LittleEndian.Uint64(c.Data.Bytes()), binary.LittleEndian.Uint64(c.Data.Bytes()[8:])
	if !r.dev.Alive(1) {
		return fmt.Errorf("rank 1 is alive, but Alive returns false")
	}
	// This push is never pulled, so it must fail.
	offered := pattern(2, 1<<20)
	mr, err := r.dev.Register(offered, rdma.Cooperative)
	if err != nil {
		return err
	}
	if err := r.post(rdma.SendWR{ID: 7, Op: rdma.OpPush, Peer: 1, RKey: mr.RKey, Body: rdma.MemOf(offered)}); err != nil {
		return err
	}
	fmt.Println("kill")
	for end := time.Now().Add(20 * time.Second); r.dev.Alive(1); time.Sleep(time.Millisecond) { // the kernel ends the process
		if time.Now().After(end) {
			return fmt.Errorf("rank 1 was killed, but Alive returns true")
		}
	}
	if c, err = r.next(); err != nil || c.ID != 7 || c.Status != rdma.StatusPeerGone {
		return fmt.Errorf("the push should complete with %v, got %+v, %v", rdma.StatusPeerGone, c, err)
	}
	for _, op := range []rdma.Op{rdma.OpRead, rdma.OpPull, rdma.OpSend} {
		c, err := r.do(rdma.SendWR{ID: 9, Op: op, Peer: 1, Remote: base, RKey: key, Body: rdma.MemOf(make([]byte, 1000))})
		if err != nil || c.Status != rdma.StatusPeerGone {
			return fmt.Errorf("%v to a dead rank should complete with %v, got %v, %v", op, rdma.StatusPeerGone, c.Status, err)
		}
	}
	fmt.Println("end")
	return nil
}

func TestKilledPeerIsNoticed(t *testing.T) {
	c := start(t, part{Scenario: "killed", N: 2}, false)
	if got := c.line(0); got != "kill" {
		t.Fatalf("rank 0 should be ready, but prints %q", got)
	}
	if err := c.ranks[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It is not waited for yet: a zombie must count as dead.
	if got := c.line(0); got != "end" {
		t.Errorf("rank 0 says %q", got)
	}
	c.ranks[0].in.Close()
	if err := c.ranks[0].cmd.Wait(); err != nil {
		t.Errorf("rank 0: %v: %s", err, c.ranks[0].stderr.String())
	}
}
