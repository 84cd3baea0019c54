package mpi

// Inter-communicators of groups that are in different jobs: one of them is, for example, the world
// of a process that was spawned, and the leaders meet over the communicator to its parent. The
// ranks of both groups form a joined job of their own, as in Accept and Connect; the bridge takes
// the place of the port.

import (
	"context"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// otherJob is the first element of the list that a leader sends instead of ranks of the world, if its
// group has no ranks in the job of the bridge.
const otherJob = -1

// bridgeJob is what the members of a group know of the other one then: the list that leaders
// distribute.
type bridgeJob struct {
	size   int  // of the other group
	second bool // the own group is the second of the joined job
}

func (j bridgeJob) list() []int64 {
	l := []int64{otherJob, int64(j.size), 0}
	if j.second {
		l[2] = 1
	}
	return l
}

// parseBridgeJob reads a list of a leader; ok is false if it has ranks of the world.
func parseBridgeJob(l []int64) (j bridgeJob, ok bool) {
	if len(l) != 3 || l[0] != otherJob {
		return j, false
	}
	return bridgeJob{int(l[1]), l[2] != 0}, true
}

// isSecond reports whether the group of a leader is the second of two that meet over the bridge.
func (c *Comm) isSecond(remote int) bool {
	if c.inter != nil {
		return c.inter.second
	}
	return c.rank > remote
}

// joinOverBridge joins the group of c with one of another job. Only the leader uses bridge, remote and tag.
func (c *Comm) joinOverBridge(op string, other bridgeJob, leader int, bridge *Comm, remote, tag int) (*Comm, error) {
	ctx := context.Background()
	if !other.second {
		return c.hostJoin(ctx, op, ErrOther, leader, func(token string) (job, size int, err error) {
			return 0, other.size, sendText(bridge, op, token, remote, tag)
		})
	}
	var token string
	var err error
	if c.rank == leader {
		token, err = receiveText(bridge, remote, tag)
	}
	if token, err = c.shareText(ErrOther, op, token, err, leader); err != nil {
		return nil, err
	}
	return c.meet(ctx, op, ErrOther, &joinPlan{sizes: [2]int{other.size, c.size}, second: true}, nil, token, nil)
}

func sendText(c *Comm, op, text string, dest, tag int) error {
	_, err := isend(c, op, []byte(text), dest, tag, p2p.Standard).wait(engine.NoContext)
	return err
}

func receiveText(c *Comm, source, tag int) (string, error) {
	st, _, err := c.probe(engine.NoContext, "Probe", source, tag, false)
	if err != nil {
		return "", err
	}
	b := make([]byte, st.Bytes)
	_, err = irecvFor(c, "Recv", b, st.Source, tag).wait(engine.NoContext)
	return string(b), err
}
