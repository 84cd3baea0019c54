//go:build ofi && cgo && linux

package hosts

import (
	"flag"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

var (
	appClasses = flag.String("apps.classes", "S", "classes of TestNASKernels")
	appRanks   = flag.String("apps.ranks", "8", "numbers of ranks of TestNASKernels")
	appSquares = flag.String("apps.squares", "4", "numbers of ranks of BT and SP in TestNASKernels")
)

// The kernels of the NAS Parallel Benchmarks compute the values of the specification, on
// this host and on four hosts.
func TestNASKernels(t *testing.T) {
	b := build(t)
	l := lab.New(t, lab.Config{Rails: 2})
	verify := func(app, class, ranks, hosts string, cmd *exec.Cmd) {
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil || !verified.Match(out) {
			t.Errorf("%s, class %s, %s ranks, %s: %v\n%s", app, class, ranks, hosts, err, out)
		}
		t.Logf("%s, class %s, %s ranks, %s: %.1f s", app, class, ranks, hosts, time.Since(start).Seconds())
	}
	for _, class := range strings.Split(*appClasses, ",") {
		for _, app := range []string{"ep", "is", "cg", "mg", "ft", "lu", "bt", "sp"} {
			numbers := *appRanks
			if app == "bt" || app == "sp" {
				numbers = *appSquares
			}
			for _, ranks := range strings.Split(numbers, ",") {
				prog := []string{b.muster, "app", app, "--class", class}
				verify(app, class, ranks, "one host", exec.CommandContext(t.Context(), b.muster, append([]string{"run", "-n", ranks}, prog...)...))
				verify(app, class, ranks, "four hosts", b.runOn(t, l, 15*time.Minute, l.Hosts(), []string{"-n", ranks, "--map-by", "node"}, prog...))
			}
		}
	}
}

var verified = regexp.MustCompile(`Verification +=  *SUCCESSFUL`)
