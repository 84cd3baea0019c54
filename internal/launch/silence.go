package launch

// Hosts that are silent. A machine that has lost its power or its network closes no
// connection. So the launcher pings each agent, and each agent those below it. Both sides
// count the intervals without a frame:
//
//	the side that pings    counts a host as lost after more than answerPings intervals
//	the agent              ends its ranks after more than leasePings intervals
//
// An agent needs fewer, so that ranks that cannot be reached have mostly ended when the
// others are told that they have failed. Intervals are counted in place of time, because a
// process may have been stopped.

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

const (
	answerPings = 6
	leasePings  = 5
	// pingShare is the part of the timeout between two pings. A host that fails right after
	// an answer is lost after answerPings+2 intervals, and one is left for delays.
	pingShare = answerPings + 3
)

// pingInterval returns the time between two pings, from the environment of the ranks: a host
// that is silent is lost within MUSTER_PEER_TIMEOUT.
func pingInterval(env, extra []string) (time.Duration, error) {
	timeout := pmi.DefaultPeerTimeout
	for _, list := range [][]string{env, extra} { // the last value applies
		for _, kv := range list {
			value, found := strings.CutPrefix(kv, pmi.EnvPeerTimeout+"=")
			if !found || value == "" {
				continue
			}
			d, err := time.ParseDuration(value)
			if err != nil || d < 0 {
				return 0, fmt.Errorf("launch: %s: give a time such as 30s", kv)
			}
			if timeout = d; d == 0 {
				timeout = pmi.DefaultPeerTimeout
			}
		}
	}
	return max(timeout/pingShare, time.Millisecond), nil
}

// watchParent ends the agent when its parent is silent for too long. The launcher may have
// been stopped together with the ranks (job.signal); then nothing is expected from it.
func (a *agent) watchParent(silent func(why string)) {
	t := time.NewTicker(a.assign.Ping)
	defer t.Stop()
	for n := 0; ; {
		select {
		case <-a.stopped:
			return
		case <-t.C:
		}
		if n++; a.heard.Swap(false) || a.busy.Load() || a.paused.Load() {
			n = 0
		}
		if n > leasePings {
			silent(fmt.Sprintf("this host has heard nothing from muster run for %s, which counts its ranks as failed; check the network between them",
				seconds(leasePings*a.assign.Ping)))
			return
		}
	}
}

// leave tells the ranks why they must end, so that their calls return errors, and gives
// them time to exit by themselves.
func (a *agent) leave(why string) {
	a.mu.Lock()
	crew, grace := a.crew, a.spec.Grace
	a.mu.Unlock()
	if crew == nil {
		return
	}
	crew.markDead(spansOf(crew.ranks...), a.assign.Host.Name, why)
	for end := time.Now().Add(grace); crew.living() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}
