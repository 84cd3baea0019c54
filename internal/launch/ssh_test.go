//go:build !windows

package launch

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sshServer runs an ssh server on loopback with its own keys, and returns a client
// configuration in which node-* are hosts.
func sshServer(t *testing.T) (config string) {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	for _, prog := range []string{"ssh", "ssh-keygen", sshd} {
		if _, err := exec.LookPath(prog); err != nil {
			t.Skipf("there is no %s (Debian packages openssh-client, openssh-server)", prog)
		}
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"host", "id"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file(key)).CombinedOutput(); err != nil {
			t.Fatalf("create a key: %v\n%s", err, out)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	write("sshd", fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n",
		port, file("host"), file("id.pub")))
	write("config", fmt.Sprintf("Host node-*\n HostName 127.0.0.1\n Port %d\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n StrictHostKeyChecking no\n",
		port, file("id"), file("known")))
	if os.Getuid() == 0 {
		os.MkdirAll("/run/sshd", 0o755) // sshd needs it for privilege separation
	}
	cmd := exec.Command(sshd, "-D", "-e", "-f", file("sshd"))
	log := new(watched)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Skipf("sshd does not start here: %v", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	listens := poll(5*time.Second, 20*time.Millisecond, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if !listens {
		t.Skipf("sshd does not listen here: %s", log)
	}
	if out, err := exec.Command("ssh", "-F", file("config"), "-o", "BatchMode=yes", "node-x", "true").CombinedOutput(); err != nil {
		t.Skipf("ssh to a private server does not work here: %v\n%s\n%s", err, out, log)
	}
	return file("config")
}

func TestSSH(t *testing.T) {
	rsh := append(strings.Fields(defaultRSH), "-F", sshServer(t))
	r := onHosts(t, "hello", "node-1.some.domain:2,node-2:2,node-3:1", Config{Remote: Remote{RSH: rsh, TreeWidth: 2}, Output: Output{Label: LabelNever}})
	if r.Status != 0 || r.err != "" || strings.Count(r.out, "hello from ") != 5 {
		t.Fatalf("five ranks on three hosts, one of them reached through another: %+v", r)
	}
	r = onHosts(t, "die", "node-1:1,node-2:1", Config{Remote: Remote{RSH: rsh}, ExtraEnv: []string{"DIE=SIGKILL"}})
	if r.Status != 137 || !strings.Contains(r.Cause, "rank 1 (pid ") || !strings.Contains(r.Cause, "on node-2): killed by SIGKILL") {
		t.Errorf("a remote failure must be reported like a local one: %+v", r)
	}
	got := failsToStart(t, Config{Hosts: []Host{{"node-1", 1}, {"other.invalid", 1}}, Remote: Remote{RSH: rsh}}, soon)
	if !strings.Contains(got, "host other.invalid: ") || !strings.Contains(got, "resolve hostname") {
		t.Errorf("the error of ssh must be reported, with the host: %s", got)
	}
	got = failsToStart(t, Config{Hosts: []Host{{"node-1", 1}}, Remote: Remote{RSH: rsh, AgentPath: "/no/such folder/muster"}}, soon)
	if !strings.Contains(got, "host node-1: ") || !strings.Contains(got, "/no/such folder/muster") || !strings.Contains(got, "--agent-path") {
		t.Errorf("a missing muster must be reported with its path: %s", got)
	}
}

func TestSSHRanksEndWithLauncher(t *testing.T) {
	config := sshServer(t)
	t.Setenv("LAUNCH_TEST_SSH", config)
	out := new(watched)
	cmd := helperLauncher(t, out, "node-1:1,node-2:1")
	out.await(t, "pid=", 2)
	cmd.Process.Kill()
	cmd.Wait()
	awaitGone(t, pids(t, out.String()))
}
