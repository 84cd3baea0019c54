package rdmatest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

// TestSuiteFindsFaults shows that each check can fail: for every check there is a mutant
// that it detects.
func TestSuiteFindsFaults(t *testing.T) {
	byName := map[string]check{}
	for _, c := range checks() {
		byName[c.name] = c
	}
	found := map[string]bool{}
	for _, m := range mutants() {
		t.Run(strings.ReplaceAll(m.fault, " ", "-"), func(t *testing.T) {
			for _, name := range m.foundBy {
				c, ok := byName[name]
				if !ok {
					t.Errorf("there is no check %q", name)
					continue
				}
				found[name] = true
				rec := tryCheck(t, c, m.mutation, 150*time.Millisecond)
				if rec.failure == "" {
					t.Errorf("%s does not detect a device that %s (skipped: %v)", name, m.fault, rec.skipped)
				} else {
					t.Logf("%s: %s", name, rec.failure)
				}
			}
		})
	}
	for name := range byName {
		if strings.HasPrefix(name, "steady-") && race.Enabled {
			continue
		}
		if !found[name] {
			t.Errorf("the check %q detects no mutant", name)
		}
	}
}

// TestUnchangedDevicePasses shows that the suite does not fail because of the wrapper.
func TestUnchangedDevicePasses(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("TestReference runs the same checks")
	}
	for _, c := range checks() {
		if c.on&rdma.RD == 0 || strings.HasPrefix(c.name, "steady-") {
			continue
		}
		if rec := tryCheck(t, c, func(rdma.Device) mutation { return mutation{} }, 0); rec.failure != "" {
			t.Errorf("%s fails on an unchanged device: %s", c.name, rec.failure)
		}
	}
}

type mutant struct {
	fault    string
	mutation func(d rdma.Device) mutation
	foundBy  []string
}

func mutants() []mutant {
	return slices.Concat(messageMutants(), memoryMutants(), recordMutants(), waitMutants(), notifyMutants(), resetMutants())
}

// eachSend calls fn for every send with its number; fn may change the list.
func eachSend(fn func(k int, wr rdma.SendWR) []rdma.SendWR) func(rdma.Device) mutation {
	return func(rdma.Device) mutation {
		k := 0
		return mutation{post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
			for i, wr := range wrs {
				list := []rdma.SendWR{wr}
				if wr.Op == rdma.OpSend {
					list = fn(k, wr)
				}
				for j := range list {
					if _, err := q.PostSend(list[j : j+1]); err != nil && j == 0 {
						return i, err
					}
				}
				k++
			}
			return len(wrs), nil
		}}
	}
}

// eachCompletion calls fn for every completion; fn may change or drop it.
func eachCompletion(fn func(c *rdma.Completion) (keep bool)) func(rdma.Device) mutation {
	return func(rdma.Device) mutation {
		return mutation{poll: func(cq rdma.CQ, out []rdma.Completion) int {
			n, kept := cq.Poll(out), 0
			for i := range out[:n] {
				if fn(&out[i]) {
					out[kept] = out[i]
					kept++
				}
			}
			return kept
		}}
	}
}

func messageMutants() []mutant {
	return []mutant{
		{"duplicates a message now and then", eachSend(func(k int, wr rdma.SendWR) []rdma.SendWR {
			if k%20 == 7 && wr.Flags&rdma.Inline != 0 {
				return []rdma.SendWR{wr, wr}
			}
			return []rdma.SendWR{wr}
		}), []string{"order-one-to-one", "order-both-ways", "order-all-to-one", "order-one-to-all", "order-all-to-all",
			"order-all-to-one-parallel", "order-all-to-all-parallel", "post-takes-a-prefix"}},
		{"loses an inline message now and then", eachSend(func(k int, wr rdma.SendWR) []rdma.SendWR {
			if k%20 == 2 && wr.Flags&rdma.Inline != 0 {
				return nil
			}
			return []rdma.SendWR{wr}
		}), []string{"order-one-to-one", "order-all-to-all-parallel", "post-takes-a-prefix", "inline-body-is-copied",
			"wait-loses-no-message", "wait-loses-no-message-many", "wait-returns-if-ready"}},
		{"cuts the last byte off long messages", eachSend(func(k int, wr rdma.SendWR) []rdma.SendWR {
			if wr.Body.Len() > 64 {
				wr.Body = wr.Body.Slice(0, wr.Body.Len()-1)
			}
			return []rdma.SendWR{wr}
		}), []string{"send-sizes", "send-largest", "recv-into-posted-buffers", "recv-into-own-queue", "poll-without-room", "lend-never-runs-out", "datagrams-whole"}},
		{"leaves a gap between head and body", eachSend(func(k int, wr rdma.SendWR) []rdma.SendWR {
			if wr.HeadLen%8 != 0 && wr.HeadLen < rdma.HeadMax {
				wr.HeadLen++
			}
			return []rdma.SendWR{wr}
		}), []string{"send-sizes", "order-one-to-one"}},
		{"completes inline sends", eachSend(func(k int, wr rdma.SendWR) []rdma.SendWR {
			wr.Flags = 0
			return []rdma.SendWR{wr}
		}), []string{"inline-makes-no-completion"}},
		{"forgets the upper half of an ID", eachCompletion(func(c *rdma.Completion) bool {
			c.ID = uint64(uint32(c.ID))
			return true
		}), []string{"send-completes-once", "read-moves", "recv-into-posted-buffers"}},
		{"never completes a send", eachCompletion(func(c *rdma.Completion) bool { return c.Op != rdma.OpSend }),
			[]string{"send-completes-once", "poll-one-by-one", "poll-two-queues", "close-completes-all"}},
		{"completes twice", func(rdma.Device) mutation {
			var again []rdma.Completion
			return mutation{poll: func(cq rdma.CQ, out []rdma.Completion) int {
				if n := copy(out, again); n > 0 {
					again = again[:0]
					return n
				}
				n := cq.Poll(out)
				for _, c := range out[:n] {
					if c.Op != rdma.OpRecv {
						again = append(again, c)
					}
				}
				return n
			}}
		}, []string{"send-completes-once", "read-write-many", "read-write-parallel", "pull-many", "pull-parallel"}},
		{"returns no error when it accepts a part", func(rdma.Device) mutation {
			return mutation{post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
				n, err := q.PostSend(wrs)
				if errors.Is(err, rdma.ErrAgain) {
					err = nil
				}
				return n, err
			}}
		}, []string{"post-takes-a-prefix"}},
		{"reports requests as accepted that it dropped", func(rdma.Device) mutation {
			return mutation{post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
				_, err := q.PostSend(wrs)
				if errors.Is(err, rdma.ErrAgain) {
					err = nil
				}
				return len(wrs), err
			}}
		}, []string{"post-takes-a-prefix", "order-one-to-one"}},
		{"returns ErrAgain for every error", func(rdma.Device) mutation {
			return mutation{post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
				n, err := q.PostSend(wrs)
				if err != nil {
					err = rdma.ErrAgain
				}
				return n, err
			}}
		}, []string{"post-too-long", "post-unknown-op", "close-ends-use", "transfer-limit"}},
		{"rejects an empty list", func(rdma.Device) mutation {
			return mutation{post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
				if len(wrs) == 0 {
					return 0, errors.New("nothing to post")
				}
				return q.PostSend(wrs)
			}}
		}, []string{"post-nothing"}},
		{"copies inline bodies too late", lateSender(false), []string{"inline-body-is-copied", "write-inline"}},
		{"completes a send before it has read the body", lateSender(true), []string{"send-body-is-free-at-completion"}},
		{"names the wrong sender", eachCompletion(func(c *rdma.Completion) bool {
			if c.Op == rdma.OpRecv {
				c.Peer = (c.Peer + 1) % 2
			}
			return true
		}), []string{"send-names-its-sender", "send-from-unresolved-peer"}},
		{"resolves any address", func(rdma.Device) mutation {
			return mutation{resolve: func(d rdma.Device, a rdma.Addr) (rdma.PeerID, error) {
				id, _ := d.Resolve(a)
				return id, nil
			}}
		}, []string{"resolve-invalid"}},
		{"returns a new handle each time", func(rdma.Device) mutation {
			next := rdma.PeerID(0)
			return mutation{resolve: func(d rdma.Device, a rdma.Addr) (rdma.PeerID, error) {
				next++
				return next, nil
			}}
		}, []string{"resolve-again"}},
		{"lends all messages in one buffer", func(rdma.Device) mutation {
			scratch := make([]byte, 64<<10)
			return mutation{poll: func(cq rdma.CQ, out []rdma.Completion) int {
				n := cq.Poll(out)
				for i := range out[:n] {
					if c := &out[i]; c.Op == rdma.OpRecv && c.Status == rdma.StatusOK {
						k := copy(scratch, c.Data.Bytes())
						c.Data = rdma.MemOf(scratch[:k])
					}
				}
				return n
			}}
		}, []string{"lend-until-next-poll", "recv-into-posted-buffers"}},
		{"ends the lending with any Poll", func(d rdma.Device) mutation {
			var lent []byte
			return mutation{poll: func(cq rdma.CQ, out []rdma.Completion) int {
				spoil(lent)
				n := cq.Poll(out)
				for _, c := range out[:n] {
					if c.Op == rdma.OpRecv {
						lent = c.Data.Bytes()
					}
				}
				return n
			}}
		}, []string{"lend-across-other-queue"}},
		{"loses what a Poll has no room for", func(rdma.Device) mutation {
			return mutation{poll: func(cq rdma.CQ, out []rdma.Completion) int {
				if len(out) > 1 {
					return cq.Poll(out)
				}
				var more [4]rdma.Completion
				return copy(out, more[:cq.Poll(more[:])])
			}}
		}, []string{"poll-without-room", "poll-one-by-one", "wait-returns-if-ready"}},
		{"mixes up its two completion queues", func(rdma.Device) mutation {
			var queues []rdma.CQ
			return mutation{poll: func(cq rdma.CQ, out []rdma.Completion) int {
				if len(queues) == 0 || len(queues) == 1 && queues[0] != cq {
					queues = append(queues, cq)
				}
				if len(queues) < 2 {
					return 0
				}
				if cq == queues[0] {
					return queues[1].Poll(out)
				}
				return queues[0].Poll(out)
			}}
		}, []string{"poll-two-queues"}},
		{"truncates messages that do not fit the buffer", eachCompletion(func(c *rdma.Completion) bool {
			if c.Status == rdma.StatusTooLong {
				c.Status = rdma.StatusOK
			}
			return true
		}), []string{"recv-too-long"}},
		{"drops a message without a buffer", func(rdma.Device) mutation {
			return mutation{recv: func(s rdma.SRQ, wrs []rdma.RecvWR) (int, error) {
				for _, q := range s.(*refSRQ).dev.qps {
					q.inbox = nil
				}
				return s.PostRecv(wrs)
			}}
		}, []string{"recv-waits-for-a-buffer"}},
		{"never reports OpLowWater", eachCompletion(func(c *rdma.Completion) bool { return c.Op != rdma.OpLowWater }),
			[]string{"recv-low-water"}},
		{"accepts no more than half of its receive queue", func(rdma.Device) mutation {
			return mutation{recv: func(s rdma.SRQ, wrs []rdma.RecvWR) (int, error) {
				if len(wrs) <= 8 {
					return s.PostRecv(wrs)
				}
				s.PostRecv(wrs[:8])
				return 8, rdma.ErrAgain
			}}
		}, []string{"recv-post-takes-a-prefix"}},
		{"accepts buffers that it does not use", func(rdma.Device) mutation {
			return mutation{recv: func(s rdma.SRQ, wrs []rdma.RecvWR) (int, error) { return len(wrs), nil }}
		}, []string{"recv-lending-takes-no-buffers", "recv-into-posted-buffers"}},
	}
}

// lateSender posts sends at the third Poll after they were accepted, without having copied
// their bodies, and completes them early if asked to.
func lateSender(early bool) func(rdma.Device) mutation {
	return func(rdma.Device) mutation {
		type messageShape struct {
			q   rdma.QP
			wr  rdma.SendWR
			due int
		}
		var queue []messageShape
		var done []rdma.Completion
		polls := 0
		return mutation{
			post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
				for _, wr := range wrs {
					if early {
						done = append(done, rdma.Completion{ID: wr.ID, Op: wr.Op, Peer: wr.Peer})
					}
					queue = append(queue, messageShape{q, wr, polls + 3})
				}
				return len(wrs), nil
			},
			poll: func(cq rdma.CQ, out []rdma.Completion) int {
				polls++
				for len(queue) > 0 && queue[0].due <= polls {
					queue[0].q.PostSend([]rdma.SendWR{queue[0].wr})
					queue = queue[1:]
				}
				if n := copy(out, done); n > 0 {
					done = done[n:]
					return n
				}
				n, kept := cq.Poll(out), 0
				for _, c := range out[:n] {
					if c.Op == rdma.OpRecv || !early {
						out[kept] = c
						kept++
					}
				}
				return kept
			},
		}
	}
}

func memoryMutants() []mutant {
	anyOp := func(kinds ...string) (names []string) {
		for _, kind := range kinds {
			for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite, rdma.OpPull} {
				names = append(names, fmt.Sprintf("refuse-%v-%s", op, kind))
			}
		}
		return names
	}
	// eachAccess modifies each request; it has access to the regions of all devices.
	eachAccess := func(fn func(wr *rdma.SendWR, regions map[uint64]*refRegion)) func(rdma.Device) mutation {
		return func(rdma.Device) mutation {
			return mutation{post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
				for i, wr := range wrs {
					if wr.Op != rdma.OpSend {
						fn(&wr, q.(*refQP).dev.peers[wr.Peer].dev.regions)
					}
					if _, err := q.PostSend([]rdma.SendWR{wr}); err != nil {
						return i, err
					}
				}
				return len(wrs), nil
			}}
		}
	}
	dropHalf := func(op rdma.Op) func(rdma.Device) mutation {
		return eachCompletion(func(c *rdma.Completion) bool { return c.Op != op })
	}
	return []mutant{
		{"clips long transfers instead of refusing them", eachAccess(func(wr *rdma.SendWR, _ map[uint64]*refRegion) {
			if most := ReferenceAttr().MaxTransfer; wr.Op == rdma.OpWrite && wr.Body.Len() > most {
				wr.Body = wr.Body.Slice(0, most)
			}
		}), []string{"transfer-limit"}},
		{"clips accesses instead of refusing them", eachAccess(func(wr *rdma.SendWR, regions map[uint64]*refRegion) {
			if r := regions[wr.RKey]; r != nil && wr.Op != rdma.OpPush {
				wr.Remote = min(max(wr.Remote, r.mr.Base), r.mr.Base+r.mr.Len-uint64(wr.Body.Len()))
			}
		}), anyOp("beyond-the-end", "before-the-start", "around-the-world")},
		{"checks addresses but not keys", eachAccess(func(wr *rdma.SendWR, regions map[uint64]*refRegion) {
			for key, r := range regions {
				if wr.Remote >= r.mr.Base && wr.Remote < r.mr.Base+r.mr.Len {
					wr.RKey = key
				}
			}
		}), anyOp("wrong-key")},
		{"grants every right", func(rdma.Device) mutation {
			return mutation{register: func(d rdma.Device, mem []byte, _ rdma.Access) (rdma.MR, error) {
				return d.Register(mem, rdma.RemoteRead|rdma.RemoteWrite|rdma.Cooperative)
			}}
		}, anyOp("missing-right")},
		{"transfers bytes before it refuses", eachAccess(func(wr *rdma.SendWR, regions map[uint64]*refRegion) {
			if r := regions[wr.RKey]; r == nil && wr.Op == rdma.OpRead {
				wr.Body.Bytes()[0]++
			}
		}), []string{"refuse-read-wrong-key", "refuse-read-after-deregister", "close-ends-access"}},
		{"never ends a registration", func(rdma.Device) mutation {
			return mutation{deregister: func(rdma.Device, rdma.MR) error { return nil }}
		}, append(anyOp("after-deregister"), "deregister-twice", "pull-abandoned", "assisted-write-deregister")},
		{"reuses a key for the same memory", func(rdma.Device) mutation {
			known := map[*byte]rdma.MR{}
			return mutation{
				register: func(d rdma.Device, mem []byte, acc rdma.Access) (mr rdma.MR, err error) {
					if mr, ok := known[&mem[0]]; ok {
						return mr, nil
					}
					mr, err = d.Register(mem, acc)
					known[&mem[0]] = mr
					return mr, err
				},
				deregister: func(rdma.Device, rdma.MR) error { return nil },
			}
		}, []string{"register-returns-new-keys", "register-overlapping"}},
		{"rounds the length up", func(rdma.Device) mutation {
			return mutation{register: func(d rdma.Device, mem []byte, acc rdma.Access) (rdma.MR, error) {
				mr, err := d.Register(mem, acc)
				mr.Len += 8
				return mr, err
			}}
		}, []string{"register-describes-memory"}},
		{"has room for 50 regions", func(d rdma.Device) mutation {
			return mutation{register: func(d rdma.Device, mem []byte, acc rdma.Access) (rdma.MR, error) {
				if len(d.(*refDevice).regions) >= 50 {
					return rdma.MR{}, rdma.ErrNoResources
				}
				return d.Register(mem, acc)
			}}
		}, []string{"register-many"}},
		{"transfers one byte too few", eachAccess(func(wr *rdma.SendWR, _ map[uint64]*refRegion) {
			if n := wr.Body.Len(); n > 1 && wr.Op != rdma.OpPush {
				wr.Body = wr.Body.Slice(0, n-1)
			}
		}), []string{"read-moves", "write-moves", "read-alone", "write-alone", "read-write-many", "read-after-message",
			"pull-owner-first", "pull-puller-first", "pull-before-push", "pull-puller-alone", "pull-owner-alone", "pull-many", "pull-parallel",
			"assisted-write-moves", "assisted-write-alone", "assisted-write-again", "assisted-write-parallel"}},
		{"never completes a push", dropHalf(rdma.OpPush), []string{"pull-owner-first", "pull-owner-alone", "pull-abandoned", "wait-wakes-on-pull"}},
		{"never completes a pull", dropHalf(rdma.OpPull), []string{"pull-puller-first", "pull-puller-alone", "pull-before-push"}},
		{"completes a push at once", func(rdma.Device) mutation {
			var done []rdma.Completion
			return mutation{
				post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
					if len(wrs) == 1 && wrs[0].Op == rdma.OpPush {
						done = append(done, rdma.Completion{ID: wrs[0].ID, Op: rdma.OpPush, Peer: wrs[0].Peer})
						return 1, nil
					}
					return q.PostSend(wrs)
				},
				poll: func(cq rdma.CQ, out []rdma.Completion) int {
					if n := copy(out, done); n > 0 {
						done = done[n:]
						return n
					}
					return cq.Poll(out)
				},
			}
		}, []string{"pull-owner-first", "pull-owner-alone", "pull-abandoned"}},
		{"counts an open push against the depth", func(d rdma.Device) mutation {
			pushes := 0
			return mutation{
				post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
					for i := range wrs {
						if wrs[i].Op != rdma.OpPush && pushes >= refPushes {
							return i, rdma.ErrAgain
						}
						if _, err := q.PostSend(wrs[i : i+1]); err != nil {
							return i, err
						}
						if wrs[i].Op == rdma.OpPush {
							pushes++
						}
					}
					return len(wrs), nil
				},
				poll: func(cq rdma.CQ, out []rdma.Completion) int {
					n := cq.Poll(out)
					for i := range out[:n] {
						if out[i].Op == rdma.OpPush {
							pushes--
						}
					}
					return n
				},
			}
		}, []string{"pull-pending-pushes"}},
		{"allocates", func(rdma.Device) mutation { return mutation{} }, steadyNames()},
	}
}

// steadyNames returns the names of the checks that the reference itself does not pass.
func steadyNames() (names []string) {
	if !race.Enabled {
		for name := range excused() {
			names = append(names, name)
		}
	}
	return names
}

func waitMutants() []mutant {
	return []mutant{
		{"never wakes before the timeout", func(rdma.Device) mutation {
			return mutation{wait: func(_ rdma.CQ, d time.Duration) error { time.Sleep(d); return nil }}
		}, []string{"wait-returns-if-ready", "wait-wakes-on-arrival", "wait-wakes-on-space", "wait-wakes-on-pull", "wait-wakes-before",
			"wait-wakes-during", "wait-loses-no-wake", "wait-loses-no-message", "wait-loses-no-message-many"}},
		{"ignores Wake", func(rdma.Device) mutation { return mutation{wake: func(rdma.CQ) {}} },
			[]string{"wait-wakes-before", "wait-wakes-during", "wait-loses-no-wake"}},
		{"forgets a Wake before Wait", func(rdma.Device) mutation {
			return mutation{wait: func(cq rdma.CQ, d time.Duration) error {
				select {
				case <-cq.(*refCQ).token:
				default:
				}
				return cq.Wait(d)
			}}
		}, []string{"wait-wakes-before"}},
		{"waits too long", func(rdma.Device) mutation {
			return mutation{wait: func(_ rdma.CQ, d time.Duration) error { time.Sleep(200*time.Millisecond + d); return nil }}
		}, []string{"wait-times-out"}},
		{"spins", func(rdma.Device) mutation {
			return mutation{wait: func(_ rdma.CQ, d time.Duration) error {
				for start := time.Now(); time.Since(start) < d; {
				}
				return nil
			}}
		}, []string{"wait-does-not-spin"}},
		{"cannot be closed twice", func(rdma.Device) mutation {
			closed := false
			return mutation{close: func(d rdma.Device) error {
				if closed {
					return errors.New("bad file descriptor")
				}
				closed = true
				return d.Close()
			}}
		}, []string{"close-twice", "close-device-first"}},
		{"keeps working after Close", func(rdma.Device) mutation {
			return mutation{close: func(rdma.Device) error { return nil }, closeQP: func(rdma.QP) error { return nil }}
		}, []string{"close-ends-use", "close-ends-access"}},
	}
}
