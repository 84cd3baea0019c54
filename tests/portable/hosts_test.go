//go:build linux && muster_portable

package portable

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

var (
	skip = flag.String("portable.skip", "AllocateNothing", "leave out the API tests that match, see the Makefile")
	bin  = flag.String("portable.bin", "", "the folder with muster-portable and mpi.portable.test; default: they are built")
)

// failures matches lines that name a failed test or the reason why a rank left.
var failures = regexp.MustCompile(`(?m)^.*(--- FAIL|leaves the job:|mpitest:|panic:).*$`)

// The API tests pass between two hosts, with one or two ranks on each.
func TestLibraryTestsOnTwoHosts(t *testing.T) {
	l := lab.New(t, lab.Config{Hosts: 2})
	muster, tests := programs(t)
	hosts := l.Hosts()
	for _, ranks := range [][2]int{{1, 1}, {2, 1}, {2, 2}} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		where := fmt.Sprintf("%s:%d,%s:%d", hosts[0], ranks[0], hosts[1], ranks[1])
		cmd := exec.CommandContext(ctx, muster, "run", "--hosts", where, "--rsh", l.Rsh(), tests, "-test.timeout", "280s", "-test.skip", *skip)
		cmd.Dir = "../../mpi"
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			// The first failures come last, where the reader of a long report looks.
			t.Fatalf("--hosts %s: %v\n%s\nthe tests that failed:\n%s", where, err, out, strings.Join(failures.FindAllString(string(out), 20), "\n"))
		}
		if n, want := strings.Count(string(out), "PASS"), ranks[0]+ranks[1]; n != want {
			t.Errorf("--hosts %s: %d of %d ranks print PASS:\n%s", where, n, want, out)
		}
		t.Logf("--hosts %s: %.1f s", where, time.Since(start).Seconds())
	}
}

// programs returns muster and the API tests, built for the portable path.
func programs(t *testing.T) (muster, tests string) {
	t.Helper()
	dir := *bin
	if dir == "" {
		dir = t.TempDir()
	}
	muster, tests = filepath.Join(dir, "muster-portable"), filepath.Join(dir, "mpi.portable.test")
	if *bin != "" {
		return muster, tests
	}
	for _, args := range [][]string{
		{"build", "-tags", "muster_portable", "-o", muster, "../../cmd/muster"},
		{"test", "-c", "-tags", "muster_portable", "-o", tests, "../../mpi"},
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return muster, tests
}
