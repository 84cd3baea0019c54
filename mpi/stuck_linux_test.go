//go:build !muster_portable

package mpi_test

// One rank makes no MPI calls while the others wait: it sleeps, computes or is stopped. The
// launcher must report it.

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func TestAbsentRankIsReported(t *testing.T) {
	muster := launcher(t)
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	const (
		who   = `rank 2 has not (been|waited) in an MPI call for \d`
		where = ` \(pid \d+ on `
		all   = `rank 2 blocks all others, directly or through other ranks`
	)
	for what, c := range map[string]struct {
		want []string
		not  string
	}{
		"sleep": {[]string{"no progress for ", who + `[^\n]*: it sleeps` + where, all}, ""},
		"stop":  {[]string{"no progress for ", who + `[^\n]*: it is stopped` + where, `kill -CONT \d+`, all}, ""},
		"loop":  {[]string{"some ranks have waited while others compute", who + `[^\n]*: it computes or polls, with `, where, all}, "no progress for"},
	} {
		for _, below := range []string{"", "below a shell"} {
			if below != "" && what == "loop" {
				continue
			}
			t.Run(strings.TrimSpace(what+" "+below), func(t *testing.T) {
				args := []string{"run", "-n", "3", "--stuck-after", "1s", "--env", programVar + "=" + awayProgram + what}
				if below != "" {
					args = append(args, "sh", "-c", `"$0"; true`)
				}
				cmd := exec.Command(muster, append(args, self)...)
				out := new(lockedBuffer)
				cmd.Stdout, cmd.Stderr = out, out
				noError(t, cmd.Start(), "start the job")
				defer func() {
					cmd.Process.Kill()
					_ = cmd.Wait() // it was killed
				}()
				wants := append(c.want, `rank 0 waits in Recv from 1 `, `rank 1 waits in Recv from 2 `)
				if !mpi.Eventually(30*time.Second, func() bool { return out.matches(wants...) }) {
					t.Fatalf("the report must match all of %q:\n%s", wants, out)
				}
				if c.not != "" && out.matches(c.not) {
					t.Errorf("the report must not say %q:\n%s", c.not, out)
				}
			})
		}
	}
}

// lockedBuffer is output that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *lockedBuffer) matches(patterns ...string) bool {
	text := b.String()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(text) {
			return false
		}
	}
	return true
}
