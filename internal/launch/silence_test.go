//go:build !windows

package launch

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPingInterval(t *testing.T) {
	for _, c := range []struct {
		env, extra string
		timeout    time.Duration // 0: an error
	}{
		{"HOME=/", "", 30 * time.Second},
		{"MUSTER_PEER_TIMEOUT=9s", "", 9 * time.Second},
		{"MUSTER_PEER_TIMEOUT=9s", "MUSTER_PEER_TIMEOUT=18s", 18 * time.Second},
		{"MUSTER_PEER_TIMEOUT=0s", "", 30 * time.Second},
		{"MUSTER_PEER_TIMEOUT=soon", "", 0},
		{"MUSTER_PEER_TIMEOUT=-1s", "", 0},
	} {
		every, err := pingInterval([]string{c.env}, []string{c.extra})
		if (err != nil) != (c.timeout == 0) || every != c.timeout/pingShare {
			t.Errorf("%s %s: a ping each %v (%v), want a part of %v", c.env, c.extra, every, err, c.timeout)
		}
	}
}

// An agent ends its ranks when it hears nothing from its parent, and earlier than the parent
// counts them as failed. It does not if it has heard something, is busy itself, or was told to
// stop its ranks.
func TestAgentWatchesItsParent(t *testing.T) {
	const ping = time.Second
	for name, prepare := range map[string]func(a *agent){
		"silent": func(*agent) {},
		"pings": func(a *agent) {
			go func() {
				for range 100 {
					time.Sleep(ping)
					a.heard.Store(true)
				}
			}()
		},
		"busy":    func(a *agent) { a.busy.Store(true) },
		"stopped": func(a *agent) { a.paused.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &agent{assign: assignment{Ping: ping}, stopped: make(chan struct{})}
				a.heard.Store(true)
				prepare(a)
				begin, silent := time.Now(), make(chan string, 1)
				go a.watchParent(func(why string) { silent <- why })
				var why string
				select {
				case why = <-silent:
				case <-time.After(100 * ping):
				}
				took := time.Since(begin)
				close(a.stopped)
				if name != "silent" {
					if why != "" {
						t.Errorf("the agent ends after %v: %s", took, why)
					}
					return
				}
				// A parent that got the last answer at the beginning counts the host as lost
				// after answerPings+2 intervals.
				if took < leasePings*ping || took >= (answerPings+2)*ping || !strings.Contains(why, "heard nothing from muster run for 5.0 s") {
					t.Errorf("the agent ends after %v: %s", took, why)
				}
			})
		})
	}
}

// An agent without a word from its parent exits by itself.
func TestSilentParent(t *testing.T) {
	greetings := greeting(jobLine, "0123456789abcdef")
	assign := `{"Host":{"Index":0,"Name":"a"},"Width":1,"Ping":20000000}`
	status, errOut := runAgentOpen(t, greetings+string(appendFrame(nil, frame{frameAssign, 0, []byte(assign)})))
	if status == 0 || !strings.Contains(errOut, "heard nothing from muster run for 0.1 s") {
		t.Errorf("the agent exits with status %d: %s", status, errOut)
	}
}
