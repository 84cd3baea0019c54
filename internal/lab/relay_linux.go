package lab

// The netlink protocol of netfilter queues (linux/netfilter/nfnetlink_queue.h).

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Messages of NFNL_SUBSYS_QUEUE: from the kernel, to the kernel, configuration.
	queuePacket = unix.NFNL_SUBSYS_QUEUE << 8
	queueAnswer = unix.NFNL_SUBSYS_QUEUE<<8 | 1
	queueConfig = unix.NFNL_SUBSYS_QUEUE<<8 | 2
	// Attributes and values.
	attrPacket   = 1  // NFQA_PACKET_HDR
	attrAnswer   = 2  // the attribute after NFQA_PACKET_HDR
	attrPayload  = 10 // NFQA_PAYLOAD
	attrCommand  = 1  // NFQA_CFG_CMD
	attrParams   = 2  // NFQA_CFG_PARAMS
	attrLength   = 3  // NFQA_CFG_QUEUE_MAXLEN
	commandBind  = 1  // NFQNL_CFG_CMD_BIND
	copyPacket   = 2  // NFQNL_COPY_PACKET
	answerAccept = 1  // NF_ACCEPT
	queueLength  = 4096
	headerLength = unix.SizeofNlMsghdr + 4 // and struct nfgenmsg
)

// startRelay opens the queue with the number of the rail on a host and answers for each
// packet. The returned function delivers what is held and closes the queue.
func startRelay(host string, rail int, r Relay) (func(), error) {
	fd, err := queueSocket(host)
	if err != nil {
		return nil, fmt.Errorf("lab: open a netfilter queue on %s: %w", host, err)
	}
	q := &relay{fd: fd, queue: uint16(rail), cfg: r, random: rand.New(rand.NewPCG(r.Seed, uint64(rail)))}
	if err := q.configure(); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("lab: configure a netfilter queue on %s: %w", host, err)
	}
	q.reader.Go(q.read)
	return q.end, nil
}

// queueSocket opens a netlink socket in the namespace of a host. The socket stays there when
// the thread has returned.
func queueSocket(host string) (int, error) {
	runtime.LockOSThread()
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return -1, err
	}
	defer unix.Close(own)
	other, err := unix.Open(filepath.Join(namespaces, host), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Setns(other, unix.CLONE_NEWNET)
		unix.Close(other)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, so that it ends with this goroutine.
		return fd, errors.Join(err, back)
	}
	runtime.UnlockOSThread()
	return fd, err
}

type relay struct {
	fd     int
	queue  uint16
	cfg    Relay
	random *rand.Rand
	reader sync.WaitGroup
	held   sync.WaitGroup
	mu     sync.Mutex // serializes sends
	done   bool       // guarded by mu
}

func (q *relay) configure() error {
	if err := unix.Bind(q.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	// So that the reader sees that it is to end.
	if err := unix.SetsockoptTimeval(q.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}); err != nil {
		return err
	}
	_ = unix.SetsockoptInt(q.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20)       // fewer packets are lost
	_ = unix.SetsockoptInt(q.fd, unix.SOL_NETLINK, unix.NETLINK_NO_ENOBUFS, 1) // a full buffer is a lost packet
	bind := []byte{commandBind, 0, 0, 0}                                       // struct nfqnl_msg_config_cmd
	params := append(binary.BigEndian.AppendUint32(nil, 0xffff), copyPacket)   // struct nfqnl_msg_config_params
	length := binary.BigEndian.AppendUint32(nil, queueLength)
	for _, a := range []struct {
		kind uint16
		body []byte
	}{{attrCommand, bind}, {attrParams, params}, {attrLength, length}} {
		if err := q.send(queueConfig, unix.NLM_F_REQUEST|unix.NLM_F_ACK, attribute(nil, a.kind, a.body)); err != nil {
			return err
		}
		if err := q.receiveAck(); err != nil {
			return err
		}
	}
	return nil
}

func attribute(to []byte, kind uint16, body []byte) []byte {
	to = binary.NativeEndian.AppendUint16(to, uint16(4+len(body)))
	to = binary.NativeEndian.AppendUint16(to, kind)
	to = append(to, body...)
	return append(to, make([]byte, -len(body)&3)...)
}

func (q *relay) send(kind, flags uint16, attributes []byte) error {
	m := binary.NativeEndian.AppendUint32(nil, uint32(headerLength+len(attributes)))
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = binary.NativeEndian.AppendUint16(m, flags)
	m = append(m, make([]byte, 8)...)                           // sequence and port
	m = binary.BigEndian.AppendUint16(append(m, 0, 0), q.queue) // struct nfgenmsg
	return unix.Sendto(q.fd, append(m, attributes...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// receiveAck receives the answer to a configuration message.
func (q *relay) receiveAck() error {
	buf := make([]byte, 4096)
	for range 100 {
		n, _, err := unix.Recvfrom(q.fd, buf, 0)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n >= unix.SizeofNlMsghdr+4 && binary.NativeEndian.Uint16(buf[4:]) == unix.NLMSG_ERROR:
			if errno := int32(binary.NativeEndian.Uint32(buf[unix.SizeofNlMsghdr:])); errno != 0 {
				return unix.Errno(-errno)
			}
			return nil
		}
	}
	return errors.New("the kernel does not answer")
}

// read handles packets until the relay ends and none has come for a while.
func (q *relay) read() {
	buf := make([]byte, 1<<17)
	for {
		n, _, err := unix.Recvfrom(q.fd, buf, 0)
		switch {
		case err == unix.EAGAIN:
			q.mu.Lock()
			done := q.done
			q.mu.Unlock()
			if done {
				return
			}
		case err == nil:
			q.messages(buf[:n])
		case err != unix.EINTR && err != unix.ENOBUFS:
			return // the rule lets packets pass when the socket is closed
		}
	}
}

// messages handles the packets of one read.
func (q *relay) messages(b []byte) {
	for len(b) >= headerLength {
		n := int(binary.NativeEndian.Uint32(b))
		if n < headerLength || n > len(b) {
			return
		}
		if binary.NativeEndian.Uint16(b[4:]) == queuePacket {
			q.packet(b[headerLength:n])
		}
		b = b[min((n+3)&^3, len(b)):]
	}
}

func (q *relay) packet(b []byte) {
	var id, payload []byte
	for len(b) >= 4 {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return
		}
		switch binary.NativeEndian.Uint16(b[2:]) & 0x3fff { // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
		case attrPacket:
			id = b[4:n]
		case attrPayload:
			payload = b[4:n]
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	if len(id) < 4 {
		return
	}
	answer := attribute(nil, attrAnswer, append(binary.BigEndian.AppendUint32(nil, answerAccept), id[:4]...))
	if q.cfg.Corrupt && len(payload) > 0 {
		changed := slices.Clone(payload)
		corrupt(changed, q.random)
		answer = attribute(answer, attrPayload, changed)
	}
	wait := time.Duration(0)
	if q.cfg.Delay > 0 {
		wait = time.Duration(q.random.Int64N(int64(q.cfg.Delay)))
	}
	if wait == 0 {
		q.answer(answer)
		return
	}
	q.held.Add(1)
	time.AfterFunc(wait, func() {
		defer q.held.Done()
		q.answer(answer)
	})
}

// answer returns a packet to the kernel, which drops it if that fails.
func (q *relay) answer(attributes []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_ = q.send(queueAnswer, unix.NLM_F_REQUEST, attributes)
}

// end waits for the packets that are held, and closes the queue.
func (q *relay) end() {
	q.mu.Lock()
	q.done = true
	q.mu.Unlock()
	q.reader.Wait()
	q.held.Wait()
	unix.Close(q.fd)
}
