//go:build linux && !race && !muster_portable

package recover

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/apps"
	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/internal/seeded"
	"github.com/muster-mpi/muster/mpi"
)

var (
	seeds = flag.Int("recover.seeds", 2, "hosts that TestLoseHost kills in each application")
	first = flag.Uint64("recover.seed", 0, "first seed; 0: that of the variable SEED, or a new one")
)

const (
	hosts   = 3
	perHost = 2
	limit   = 60 * time.Second // of a job
)

func TestMain(m *testing.M) {
	if app := os.Getenv("RECOVER_APP"); app != "" {
		runApp(app)
		return
	}
	flag.Parse()
	os.Exit(m.Run())
}

// runApp runs an application as a rank. The process RECOVER_PROCESS kills its host, or with RECOVER_ALONE itself,
// at the beginning of step RECOVER_STEP. One that was started in its place does not.
func runApp(name string) {
	all := apps.All()
	app := all[slices.IndexFunc(all, func(a apps.App) bool { return a.Name == name })]
	at, _ := strconv.Atoi(os.Getenv("RECOVER_STEP"))
	saving := apps.Saving{Every: 2}
	if os.Getenv("RECOVER_PROCESS") == os.Getenv("PMI_RANK") && os.Getenv("MUSTER_PARENT") == "" {
		saving.Step = func(step int) {
			if step == at && os.Getenv("RECOVER_ALONE") != "" {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			if step == at {
				killHost()
			}
		}
	}
	mpi.Main(mpi.Recover(func(c *mpi.Comm, a mpi.Attempt) error {
		result, err := app.RunSaved(c, 'S', saving)
		if err != nil || c.Rank() != 0 {
			return err
		}
		fmt.Printf("attempt %d, %d ranks\n%v\n", a.Number, c.Size(), &result)
		return nil
	}))
}

// killHost kills all processes in the network namespace of this one, and this one last.
func killHost() {
	mine, _ := os.Readlink("/proc/self/ns/net")
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
		if theirs, _ := os.Readlink(link); theirs == mine && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// TestLoseHost kills a host at a random step of the heat solver and of CG. Half of the jobs
// have spares on a host of their own, the others go on with fewer ranks.
func TestLoseHost(t *testing.T) {
	l := lab.New(t, lab.Config{Hosts: hosts})
	muster, self, slots := prepare(t, l)
	begin := *first
	if begin == 0 {
		begin = seeded.Seed() // the names of the subtests have it
	}
	for i := range *seeds {
		for app, steps := range map[string]int{"heat": 20, "cg": 15} {
			seed := begin + uint64(i)
			t.Run(fmt.Sprintf("%s/seed %d", app, seed), func(t *testing.T) {
				random := seeded.New(seed)
				step := 1 + random.IntN(steps)
				victim := random.IntN(hosts)
				args := []string{"run", "--hosts", strings.Join(slots, ","), "--rsh", l.Rsh(), "--timeout", limit.String()}
				ranks, left := hosts*perHost, hosts*perHost-perHost
				if i%2 == 0 {
					victim = random.IntN(hosts - 1) // one with ranks
					ranks, left = ranks-perHost, ranks-perHost
					args = append(args, "--spares", strconv.Itoa(perHost))
				}
				args = append(args, "-n", strconv.Itoa(ranks), self)
				what := fmt.Sprintf("host %d killed in step %d", victim+1, step)
				took := runJob(t, what, args, muster, []string{"RECOVER_APP=" + app, fmt.Sprint("RECOVER_STEP=", step), fmt.Sprint("RECOVER_PROCESS=", victim*perHost)},
					fmt.Sprintf("attempt 2, %d ranks", left), "SUCCESSFUL")
				t.Logf("host %d killed in step %d, %d ranks: %v", victim+1, step, ranks, took.Round(time.Millisecond))
			})
		}
	}
}

// prepare returns the paths of muster and of this program, and the hosts of the lab with their slots.
func prepare(t *testing.T, l *lab.Lab) (muster, self string, slots []string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	muster = os.Getenv("TEST_MUSTER") // make test has built it
	if muster == "" {
		muster = filepath.Join(t.TempDir(), "muster")
		if out, err := exec.Command("go", "build", "-o", muster, "../../cmd/muster").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	for _, h := range l.Hosts() {
		slots = append(slots, fmt.Sprintf("%s:%d", h, perHost))
	}
	return muster, self, slots
}

// runJob runs a job, which must succeed and print some texts.
func runJob(t *testing.T, what string, args []string, muster string, env []string, wants ...string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, muster, args...)
	cmd.Env = append(os.Environ(), "MUSTER_ON_FAILURE=return")
	for _, v := range env { // other hosts get only some of the variables
		cmd.Args = slices.Insert(cmd.Args, 2, "--env", v)
	}
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
	for _, want := range wants {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: the output has no %q:\n%s", what, want, out)
		}
	}
	return time.Since(start)
}
