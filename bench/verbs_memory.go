package bench

// The memory of a process for an idle peer. First there is one peer, and everything has been
// used once. Then all others are added, a message is exchanged with each, and the growth is
// divided by their number. On a transport without connections one queue pair of the
// leader serves all of them; at the other end each is a separate queue pair.
//
// In the kernel a socket consists of several objects, whose sizes are in slabinfo, and of its
// buffers (SO_MEMINFO). sockstat, which counts buffers of the whole machine, is a
// second figure.

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// settleTime is the time allowed for late acknowledgements.
const settleTime = 300 * time.Millisecond

func leadMemory(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	d, ok := w.(*deviceWire)
	if !ok || w.lossy() {
		return nil, fmt.Errorf("%w: it has no peers", rdma.ErrUnsupported)
	}
	if err := greetPeers(s, w, 0, 1); err != nil {
		return nil, err
	}
	before, err := weigh(d)
	if err != nil {
		return nil, err
	}
	more := 0
	if d.kind == rdma.RC {
		more = t.Peers
	}
	if _, err := s.step(); err != nil {
		return nil, err
	}
	if err := growPeers(s, d, more); err != nil {
		return nil, err
	}
	if err := greetPeers(s, w, 1, t.Peers); err != nil {
		return nil, err
	}
	after, err := weigh(d)
	if err != nil {
		return nil, err
	}
	each := func(a, b float64) float64 { return (b - a) / float64(t.Peers) }
	user, kernel := each(before.user, after.user), each(before.kernel, after.kernel)
	return []figure{
		{"total", "B", user + kernel, after.how}, {"user", "B", user, "smaps"}, {"kernel", "B", kernel, after.how},
		{"sockets", "1", each(float64(before.sockets), float64(after.sockets)), "fd"},
		{"sockstat", "B", each(before.sockstat, after.sockstat), "both ends, machine"},
	}, nil
}

func followMemory(s *VerbsSession, w wire, t *verbsTrial) error {
	d, ok := w.(*deviceWire)
	if !ok || w.lossy() {
		return fmt.Errorf("%w: it has no peers", rdma.ErrUnsupported)
	}
	if err := answerPeers(s, w, 0, 1); err != nil {
		return err
	}
	if err := pollUntilHalted(s, w); err != errHalted {
		return err
	}
	if _, err := s.followStep(); err != nil {
		return err
	}
	if err := growPeers(s, d, t.Peers); err != nil {
		return err
	}
	if err := answerPeers(s, w, 1, t.Peers); err != nil {
		return err
	}
	return pollUntilHalted(s, w)
}

// growPeers creates more queue pairs and exchanges their addresses.
func growPeers(s *VerbsSession, d *deviceWire, more int) error {
	err := d.addPairs(more)
	theirs, err := s.swap(note{Kind: "card", Card: d.card()}, err)
	if err != nil {
		return err
	}
	_, err = s.swap(note{Kind: "ready"}, d.connect(theirs.Card))
	return err
}

// greetPeers exchanges a message with each of n peers, beginning with first, and waits for
// late acknowledgements.
func greetPeers(s *VerbsSession, w wire, first, n int) error {
	out := buffer(1)
	for k := range n {
		if err := w.send(first+k, out); err != nil {
			return err
		}
		if err := s.await(w, first+k, 1); err != nil {
			return err
		}
	}
	for end := time.Now().Add(settleTime); time.Now().Before(end); {
		if _, err := w.take(0, 1); err != nil {
			return err
		}
	}
	return nil
}

func answerPeers(s *VerbsSession, w wire, first, n int) error {
	out := buffer(1)
	for k := range n {
		if err := s.await(w, first+k, 1); err != nil {
			return err
		}
		if err := w.send(first+k, out); err != nil {
			return err
		}
	}
	return nil
}

// weight is the memory of this process, in bytes.
type weight struct {
	user, kernel, sockstat float64
	sockets                int
	how                    string // source of the kernel's figure
}

func weigh(d *deviceWire) (w weight, err error) {
	debug.FreeOSMemory()
	pss, err := pssKiB()
	if err != nil {
		return w, err
	}
	w.user = 1024 * pss
	var watched, buffers int
	if w.sockets, watched, buffers, err = ownSockets(); err != nil {
		return w, err
	}
	protocol := "UDP"
	if d.kind == rdma.RC {
		protocol = "TCP"
	}
	socket, watch, ok := kernelObjects(protocol)
	w.how = "slabinfo, buffers"
	if !ok {
		w.how = "buffers only: slabinfo is for root"
	}
	w.kernel = float64(w.sockets*socket + watched*watch + buffers)
	w.sockstat, err = sockstat(protocol)
	return w, err
}

// ownSockets counts the sockets of this process, those in an epoll set, and the bytes in
// their buffers.
func ownSockets() (sockets, watched, buffers int, err error) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, 0, 0, fmt.Errorf("count sockets: %w", err)
	}
	for _, entry := range list {
		name, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil {
			continue // the directory itself, closed by now
		}
		switch {
		case strings.HasPrefix(name, "socket:"):
			fd, err := strconv.Atoi(entry.Name())
			if err != nil {
				return 0, 0, 0, err
			}
			sockets++
			buffers += socketBuffers(fd)
		case name == "anon_inode:[eventpoll]":
			info, err := os.ReadFile("/proc/self/fdinfo/" + entry.Name())
			if err != nil {
				return 0, 0, 0, err
			}
			watched += strings.Count(string(info), "tfd:")
		}
	}
	return sockets, watched, buffers, nil
}

// kernelObjects returns the bytes of the kernel objects of a socket, and of an epoll entry.
// ok is false if slabinfo cannot be read.
func kernelObjects(protocol string) (socket, watch int, ok bool) {
	text, err := os.ReadFile("/proc/slabinfo")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 4 {
			continue
		}
		size, err := strconv.Atoi(words[3])
		if err != nil {
			continue // a heading
		}
		switch words[0] {
		case protocol, "sock_inode_cache", "filp", "dentry":
			socket += size
		case "eventpoll_epi", "eventpoll_pwq":
			watch += size
		}
	}
	return socket, watch, socket > 0
}

// sockstat returns the buffer memory of all sockets of a protocol, in bytes.
func sockstat(protocol string) (float64, error) {
	f, err := os.Open("/proc/net/sockstat")
	if err != nil {
		return 0, fmt.Errorf("memory of sockets: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] != protocol+":" {
			continue
		}
		for i := 1; i+1 < len(words); i += 2 {
			if words[i] == "mem" {
				pages, err := strconv.Atoi(words[i+1])
				return float64(pages * os.Getpagesize()), err
			}
		}
	}
	return 0, fmt.Errorf("/proc/net/sockstat has no memory of %s", protocol)
}
