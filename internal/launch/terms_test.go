//go:build !windows

package launch

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// Ranks of different versions or settings end the job at once, with one sentence and
// nothing else, on one host and on two.
func TestRanksThatDoNotFit(t *testing.T) {
	const one = `rank \d on \S+ `
	for role, want := range map[string]string{
		"versions": one + `runs Muster v[78]\.0\.0 \(protocol [78]\), but ` + one + `runs Muster v[78]\.0\.0 \(protocol [78]\); build`,
		"settings": one + `has (the default of MUSTER_COLLECTIVE|MUSTER_COLLECTIVE=bcast=chain), but ` + one + `has .*MUSTER_COLLECTIVE.*; give all ranks`,
	} {
		for _, hosts := range []string{"", "a:2,b:2"} {
			t.Run(role+" "+hosts, func(t *testing.T) {
				run := func(role string) jobRun {
					if hosts == "" {
						return runRole(t, role, Config{Ranks: 4})
					}
					return onHosts(t, role, hosts, Config{})
				}
				r := run(role)
				if r.Status != 1 || !regexp.MustCompile(want).MatchString(r.Cause) || !strings.Contains(r.Cause, "rank 3") {
					t.Errorf("status %d, cause %q; want %s", r.Status, r.Cause, want)
				}
				if r.out != "" || r.err != "muster: "+r.Cause+"\n" {
					t.Errorf("the sentence must be all that is printed:\n%s%s", r.out, r.err)
				}
				if r.took > slow*3*time.Second {
					// On a busy machine every job takes long.
					if fit := run("hello"); r.took > 3*fit.took {
						t.Errorf("it took %v, and a job without an error %v", r.took, fit.took)
					}
				}
			})
		}
	}
}

// Two processes that a script starts as one rank share its connection.
func TestRankThatJoinsTwice(t *testing.T) {
	r := runRole(t, "sleep", Config{Ranks: 1, Prog: shell(t), Args: []string{"-c", `"$0" & sleep 0.3; "$0"; wait`, self(t)}})
	if r.Status != 1 || !strings.Contains(r.Cause, "rank 0 on ") || !strings.Contains(r.Cause, "has joined the job twice: two processes") {
		t.Errorf("status %d, cause %q", r.Status, r.Cause)
	}
}
