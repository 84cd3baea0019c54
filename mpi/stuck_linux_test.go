//go:build !muster_portable

package mpi_test

// One rank makes no MPI calls while the others wait: it sleeps, computes or is stopped. The
// launcher must report it.

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
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
				t.Parallel()
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

// TestStageOfStartIsReported: a rank that does not join stops the start. The report names the
// stage in which the others wait, and what each process does in the kernel.
func TestStageOfStartIsReported(t *testing.T) {
	muster := launcher(t)
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	asleep := `S \w+` // the function is hidden where /proc is restricted
	if functions, _ := filepath.Glob("/proc/self/task/*/wchan"); !slices.ContainsFunc(functions, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && len(text) > 1
	}) {
		asleep = "S"
	}
	for _, c := range []struct{ flags, env, head, stage string }{
		{"--stuck-after 1s", "", "no progress for |some ranks have waited", `Fence \(addresses of all ranks\)`},
		{"--start-timeout 3s", "", "the start takes too long; what the ranks wait for", `Fence \(addresses of all ranks\)`},
		{"--stuck-after 1s", "MUSTER_NETWORK=iwarp MUSTER_NO_SHARED_MEMORY=1", "no progress for |some ranks have waited", `Fence \(terms of the network\)`},
	} {
		t.Run(strings.TrimSpace(c.flags+" "+c.env), func(t *testing.T) {
			t.Parallel()
			args := append(strings.Fields("run -n 3 "+c.flags), "sh", "-c", `if [ "$PMI_RANK" = 2 ]; then exec sleep 60; fi; exec "$0"`, self)
			cmd := exec.Command(muster, args...)
			cmd.Env = append(append(os.Environ(), programVar+"=reduce twice"), strings.Fields(c.env)...)
			out := new(lockedBuffer)
			cmd.Stdout, cmd.Stderr = out, out
			noError(t, cmd.Start(), "start the job")
			defer func() {
				_ = cmd.Process.Signal(syscall.SIGTERM) // it ends its ranks; it may have ended already
				_ = cmd.Wait()
			}()
			wants := []string{c.head, `ranks 0-1 wait in ` + c.stage + ` on comm start-up for \d`, `rank 2 has not joined the job`,
				`threads of rank 2 in the kernel: ` + asleep + `\n`, `threads of ranks? 0(-1)? in the kernel: `}
			if !mpi.Eventually(30*time.Second, func() bool { return out.matches(wants...) }) {
				t.Fatalf("the report must match all of %q:\n%s", wants, out)
			}
		})
	}
}
