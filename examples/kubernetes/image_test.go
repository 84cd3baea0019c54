//go:build launchers

package kubernetes

// A test of the image without a container engine: it builds the file system as the
// Containerfile does and runs two ranks in it as in two pods, each with that root
// directory and its own PID namespace and /dev/shm. The libraries of this machine are not
// accessible.

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRanksInImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for chroot and namespaces")
	}
	if exec.Command("pkg-config", "--exists", "libfabric").Run() != nil {
		t.Skip("libfabric's headers are not installed (Debian packages pkg-config and libfabric-dev)")
	}
	program, image := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "image")
	must(t, "go", "build", "-tags", "ofi,netgo", "-o", program, "../02-ring")
	must(t, "sh", "collect.sh", program, image)
	if _, err := os.Stat(filepath.Join(image, "bin/sh")); err == nil {
		t.Error("there must be no shell in the image")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	root := l.Addr().String()
	l.Close()
	key := rand.Text()
	var (
		wg   sync.WaitGroup
		outs [2]string
	)
	for rank := range outs {
		wg.Go(func() {
			out, err := inPod(t, image, []string{
				fmt.Sprintf("JOB_COMPLETION_INDEX=%d", rank), "MUSTER_SIZE=2", "MUSTER_ROOT=" + root, "MUSTER_KEY=" + key, "MUSTER_INTERFACE=lo",
			})
			if err != nil {
				t.Errorf("rank %d: %v\n%s", rank, err, out)
			}
			outs[rank] = out
		})
	}
	wg.Wait()
	if !strings.Contains(outs[0], "the token went through 2 ranks and brings 1") {
		t.Errorf("rank 0 must print the result of the ring; it printed %q", outs[0])
	}
}

// inPod runs the image's program.
func inPod(t *testing.T, image string, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
		`mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/dev"; mkdir "$0/dev/shm"; exec chroot "$0" /program`, image)
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func must(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
