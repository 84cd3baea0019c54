//go:build !windows

package launch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// Hosts with separate networks, which the launcher reaches only through the remote
// command.
func TestJobOnLab(t *testing.T) {
	l := lab.New(t, lab.Config{Hosts: 4})
	rsh, err := ParseRSH(l.Rsh())
	if err != nil {
		t.Fatal(err)
	}
	var hosts []Host
	for _, name := range l.Hosts() {
		hosts = append(hosts, Host{name, 16})
	}
	var r jobRun
	for _, width := range []int{16, 1} {
		r = runRole(t, "hello", Config{Hosts: hosts, Remote: Remote{RSH: rsh, TreeWidth: width}, Output: Output{Label: LabelNever}})
		if r.Status != 0 || r.err != "" {
			t.Fatalf("64 ranks on 4 hosts must end well: %+v", r)
		}
		for rank := range 64 {
			want := fmt.Sprintf("hello from %d of 64, local %d of 16\n", rank, rank%16)
			if strings.Count(r.out, want) != 1 {
				t.Errorf("%q must come once", want)
			}
		}
		// Each host requests the 48 addresses of the others once, for all its ranks.
		if width == 16 && r.Gets != 4*48 {
			t.Errorf("the launcher got %d requests, should be %d", r.Gets, 4*48)
		}
		t.Logf("width %d: 64 ranks on 4 hosts from start to end in %v, %d gets at the launcher", width, r.took, r.Gets)
		if r.took > slow*3*time.Second {
			t.Errorf("it took %v", r.took)
		}
	}
	if err := l.Cut(l.Hosts()[1], 0); err != nil {
		t.Fatal(err)
	}
	if r := runRole(t, "hello", Config{Hosts: hosts, Remote: Remote{RSH: rsh}}); r.Status != 0 {
		t.Errorf("agents need no network when their shell needs none: %+v", r.Result)
	}
}
