// Command storm is a rank that checks the messages it receives: every message has a
// number, and its length and contents are derived from that number. The receiver thus
// detects a message that is lost, duplicated, out of order or corrupted.
//
//	storm exchange -messages 2000     every rank with every other, in both directions
//	storm answer -messages 2000       ranks 0 and 1 alternate, so that one only receives
//	storm flood -messages 5000        all send to rank 0, which starts late
//	storm late -messages 100          collectives that ranks enter at random times
//	storm laps                        long collectives until the input of rank 0 ends
//	storm wait                        all wait for rank 1, which the test kills
//	storm survive -dir DIR            goes on when ranks fail
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

func main() {
	flags := flag.NewFlagSet("storm", flag.ExitOnError)
	messages := flags.Int("messages", 1000, "that each rank sends to each other")
	longest := flags.Int("longest", 200_000, "length of the longest message in bytes")
	think := flags.Duration("think", 0, "answer: how long a rank waits before it sends")
	late := flags.Duration("late", 2*time.Second, "flood: how long rank 0 waits before it receives")
	dir := flags.String("dir", ".", "survive: a directory that all ranks share")
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "storm: say what to do: exchange, answer, flood, late, laps, wait or survive")
		os.Exit(2)
	}
	_ = flags.Parse(os.Args[2:]) // exits on errors
	mpi.Main(func(c *mpi.Comm) error {
		switch os.Args[1] {
		case "exchange":
			return exchange(c, *messages, *longest)
		case "answer":
			return answer(c, *messages, *longest, *think)
		case "flood":
			return flood(c, *messages, *longest, *late)
		case "late":
			return comeLate(c, *messages, *longest)
		case "laps":
			return runLaps(c)
		case "wait":
			return wait(c)
		case "survive":
			return survive(c, *dir)
		}
		return fmt.Errorf("storm: unknown command %q", os.Args[1])
	})
}

// mix returns a pseudo-random number derived from its arguments (a Weyl sequence with a
// finalizer like murmur's).
func mix(a, b, c int) uint64 {
	x := uint64(a)*0x9E3779B97F4A7C15 + uint64(b)*0xD1B54A32D192ED03 + uint64(c)*0x8CB92BA72F3D8DD7
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	return x ^ x>>29
}

// length returns the length of a message: most are short, some are long.
func length(from, to, n, longest int) int {
	r := mix(from, to, n)
	switch r % 10 {
	case 0:
		return int(r>>8) % max(longest, 1)
	case 1, 2:
		return int(r>>8) % 20_000 % max(longest, 1)
	}
	return int(r>>8) % 500 % max(longest, 1)
}

// fill writes a message, and check compares it.
func fill(buf []byte, from, to, n int) {
	x := mix(from, to, n)
	for len(buf) >= 8 {
		binary.LittleEndian.PutUint64(buf, x)
		buf, x = buf[8:], x*0x9E3779B97F4A7C15+1
	}
	for i := range buf {
		buf[i] = byte(x >> (8 * i))
	}
}

func check(buf, scratch []byte, from, to, n, longest int) error {
	if want := length(from, to, n, longest); len(buf) != want {
		return fmt.Errorf("message %d of rank %d has %d bytes, want %d: wrong order, or truncated", n, from, len(buf), want)
	}
	fill(scratch[:len(buf)], from, to, n)
	if string(buf) != string(scratch[:len(buf)]) {
		return fmt.Errorf("message %d of rank %d is corrupted", n, from)
	}
	return nil
}

// exchange lets every rank send to every other, a few messages at a time, while it
// receives.
func exchange(c *mpi.Comm, messages, longest int) error {
	const under = 4 // messages under way to each rank
	me, size := c.Rank(), c.Size()
	type lane struct {
		in, out   []mpi.Request
		ibuf      [][]byte
		obuf      [][]byte
		got, sent int
	}
	lanes := make([]lane, size)
	scratch := make([]byte, longest)
	for p := range lanes {
		for range under {
			lanes[p].ibuf = append(lanes[p].ibuf, make([]byte, longest))
			lanes[p].obuf = append(lanes[p].obuf, make([]byte, longest))
		}
	}
	for n := 0; n < messages; n += under {
		k := min(under, messages-n)
		for p := range lanes {
			l := &lanes[p]
			l.in, l.out = l.in[:0], l.out[:0]
			if p == me {
				continue
			}
			for i := range k {
				l.in = append(l.in, mpi.Irecv(c, l.ibuf[i], p, 7))
			}
		}
		for p := range lanes {
			l := &lanes[p]
			if p == me {
				continue
			}
			for i := range k {
				buf := l.obuf[i][:length(me, p, n+i, longest)]
				fill(buf, me, p, n+i)
				l.out = append(l.out, mpi.Isend(c, buf, p, 7))
			}
		}
		for p := range lanes {
			l := &lanes[p]
			for i, r := range l.in {
				st, err := r.Wait()
				if err != nil {
					return fmt.Errorf("receive message %d of rank %d: %w", n+i, p, err)
				}
				if err := check(l.ibuf[i][:st.Bytes], scratch, p, me, n+i, longest); err != nil {
					return err
				}
				l.got++
			}
			for i, r := range l.out {
				if _, err := r.Wait(); err != nil {
					return fmt.Errorf("send message %d to rank %d: %w", n+i, p, err)
				}
				l.sent++
			}
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	fmt.Printf("rank %d has exchanged %d messages with each of %d ranks, network %s\n", me, messages, size-1, inspect.DeviceName(c, (me+size-1)%size))
	return nil
}

// answer lets ranks 0 and 1 alternate in sending: the waiting rank has nothing to send.
func answer(c *mpi.Comm, messages, longest int, think time.Duration) error {
	me := c.Rank()
	buf, scratch := make([]byte, longest), make([]byte, longest)
	var longestPause time.Duration
	last := time.Now()
	for n := range 2 * messages {
		if n%2 == me {
			m := buf[:length(me, 1-me, n, longest)]
			fill(m, me, 1-me, n)
			time.Sleep(think)
			if err := mpi.Send(c, m, 1-me, 7); err != nil {
				return fmt.Errorf("send message %d: %w", n, err)
			}
			continue
		}
		st, err := mpi.Recv(c, buf, 1-me, 7)
		if err != nil {
			return fmt.Errorf("receive message %d: %w", n, err)
		}
		longestPause, last = max(longestPause, time.Since(last)), time.Now()
		if err := check(buf[:st.Bytes], scratch, 1-me, me, n, longest); err != nil {
			return err
		}
	}
	fmt.Printf("rank %d has exchanged %d messages, longest pause %v\n", me, messages, longestPause)
	return nil
}

// flood lets all ranks send to rank 0, which starts to receive late. Rank 0 prints the
// maximum growth of its memory.
func flood(c *mpi.Comm, messages, longest int, late time.Duration) error {
	me := c.Rank()
	if me != 0 {
		buf := make([]byte, longest)
		for n := range messages {
			m := buf[:length(me, 0, n, longest)]
			fill(m, me, 0, n)
			if err := mpi.Send(c, m, 0, 7); err != nil {
				return fmt.Errorf("send message %d: %w", n, err)
			}
		}
		return nil
	}
	runtime.GC()
	before := resident("VmRSS")
	time.Sleep(late)
	next := make([]int, c.Size())
	buf, scratch := make([]byte, longest), make([]byte, longest)
	for range messages * (c.Size() - 1) {
		st, err := mpi.Recv(c, buf, mpi.AnySource, 7)
		if err != nil {
			return err
		}
		if err := check(buf[:st.Bytes], scratch, st.Source, 0, next[st.Source], longest); err != nil {
			return err
		}
		next[st.Source]++
	}
	fmt.Printf("rank 0 has received %d messages of each of %d ranks; grew by %d KB\n", messages, c.Size()-1, resident("VmHWM")-before)
	return nil
}

// resident returns a memory size of this process in KB.
func resident(what string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, what+":"); ok {
			kb := 0
			fmt.Sscan(value, &kb)
			return kb
		}
	}
	return 0
}

// wait waits for rank 1, which prints its process id and never sends. All others print
// the error that they get, and when.
func wait(c *mpi.Comm) error {
	if err := c.Barrier(); err != nil {
		return err
	}
	if c.Rank() == 1 {
		fmt.Printf("victim %d\n", os.Getpid())
		time.Sleep(time.Hour)
	}
	buf := make([]byte, 1<<20)
	_, err := mpi.Recv(c, buf, 1, 7)
	fmt.Printf("wait ended: %d %d %v\n", c.Rank(), time.Now().UnixMilli(), err)
	return nil
}
