//go:build launchers

package launchers

// Slurm with two nodes on loopback: munged, slurmctld and two slurmd in a folder
// of their own, on free ports, with a key of their own, so that an installed
// Slurm is neither used nor disturbed. They run in the foreground as children of
// the test and are ended by their process numbers.

import (
	"bytes"
	"context"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"
)

var slurmConf = template.Must(template.New("slurm.conf").Parse(`ClusterName=muster
SlurmctldHost={{.Host}}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={{.Folder}}/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmctldPort={{index .Ports 0}}
SlurmdPort={{index .Ports 1}}
StateSaveLocation={{.Folder}}/state
SlurmdSpoolDir={{.Folder}}/spool-%n
SlurmctldPidFile={{.Folder}}/slurmctld.pid
SlurmdPidFile={{.Folder}}/slurmd-%n.pid
# Without a folder for each node the PMIx plug-ins of the two meet in one.
TmpFS={{.Folder}}/tmp-%n
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=n0 NodeHostname={{.Host}} NodeAddr=127.0.0.1 Port={{index .Ports 2}} CPUs=4 State=UNKNOWN
NodeName=n1 NodeHostname={{.Host}} NodeAddr=127.0.0.1 Port={{index .Ports 3}} CPUs=4 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
`))

// startSlurm returns the environment for srun.
func startSlurm(t *testing.T) []string {
	t.Helper()
	asRoot(t)
	for name, debian := range map[string]string{"srun": "slurm-client", "slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge"} {
		tool(t, name, debian)
	}
	folder := filepath.Join(scratch, "slurm")
	for _, sub := range []string{"state", "spool-n0", "spool-n1", "tmp-n0", "tmp-n1"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	key := make([]byte, 128)
	rand.Read(key)
	if err := os.WriteFile(in("munge.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	var conf bytes.Buffer
	if err := slurmConf.Execute(&conf, map[string]any{"Host": host, "Folder": folder, "Ports": freePorts(t, 4)}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("slurm.conf"), conf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLURM_CONF=" + in("slurm.conf")}
	serve(t, env, in("munged.log"), "munged", "--foreground", "--force", "--key-file="+in("munge.key"), "--socket="+in("munge.socket"),
		"--pid-file="+in("munge.pid"), "--log-file="+in("munge.log"), "--seed-file="+in("munge.seed"))
	awaitFile(t, in("munge.socket"), in("munged.log"))
	serve(t, env, in("slurmctld.log"), "slurmctld", "-D", "-c")
	serve(t, env, in("slurmd-n0.log"), "slurmd", "-D", "-N", "n0")
	serve(t, env, in("slurmd-n1.log"), "slurmd", "-D", "-N", "n1")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		out, err := run(t, env, "sinfo", "--noheader", "--format=%T %D")
		if err == nil && strings.TrimSpace(out) == "idle 2" {
			return env
		}
		if time.Now().After(end) {
			logs, _ := exec.Command("sh", "-c", "tail -n 5 "+folder+"/*.log").CombinedOutput()
			t.Fatalf("the two nodes of Slurm are not idle after 30 s: %q, %v\n%s", out, err, logs)
		}
	}
}

// serve starts a server that runs until the test ends.
func serve(t *testing.T, env []string, log, name string, args ...string) {
	t.Helper()
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = file, file
	// If this process is killed, its servers must exit.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
		cmd.Wait()
		stop()
	})
}

func awaitFile(t *testing.T, path, log string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log)
			t.Fatalf("%s was not created\n%s", path, text)
		}
	}
}

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // keep all open until all are known, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func TestUnderSlurm(t *testing.T) {
	env := startSlurm(t)
	four := []string{"srun", "-N2", "-n4", "--ntasks-per-node=2"}
	byPMI2, byPMIx := []string{"--mpi=pmi2"}, []string{"--mpi=pmix"}
	two := nodeLines(0, 0, 1, 1)
	tryAll(t, env, four, []trial{
		{"four ranks on two nodes find each other by pmi2", []string{role + "exchange"}, two, byPMI2, plain},
		{"four ranks on two nodes find each other by pmix", []string{role + "exchange"}, two, byPMIx, bootstrap},
		{"a message goes round two nodes, pmi2", overLoopback, ringOfFour, byPMI2, ring},
		{"a message goes round two nodes, pmix", overLoopback, ringOfFour, byPMIx, ring},
		{"the tests of point-to-point pass on two nodes", overLoopback, []string{"PASS"}, byPMI2, mpi},
	})
	for compiler := range families {
		for _, how := range []string{"--mpi=pmi2", "--mpi=pmix"} {
			t.Run(compiler+" on Muster's library, "+how, func(t *testing.T) {
				libraries, program := cInterface(t, compiler, "ring")
				prints(t, append(env, "LD_LIBRARY_PATH="+libraries), ringOnMuster, "srun", "-N1", "-n4", how, program)
			})
		}
	}
	t.Run("a program without PMIx says what to do", func(t *testing.T) {
		out, err := run(t, append(env, role+"exchange"), "srun", "-n2", "--mpi=pmix", plain.command(t)[0])
		if err == nil || !strings.Contains(out, "srun --mpi=pmi2, or build it with -tags pmix") {
			t.Errorf("the refusal must name the flag and the tag; got %v and\n%s", err, out)
		}
	})
	t.Run("a step without PMI says what to do", func(t *testing.T) {
		out, err := run(t, append(env, role+"exchange"), "srun", "-n2", "--mpi=none", plain.command(t)[0])
		if err == nil || !strings.Contains(out, "start it with srun --mpi=pmi2") {
			t.Errorf("the refusal must name the flag; got %v and\n%s", err, out)
		}
	})
	t.Run("an abort ends the step", func(t *testing.T) {
		began := time.Now()
		for _, how := range []string{"--mpi=pmi2", "--mpi=pmix"} {
			if out, err := run(t, append(env, role+"abort"), "srun", "-N2", "-n4", how, bootstrap.command(t)[0]); err == nil {
				t.Errorf("srun %s must fail when a rank aborts; it printed\n%s", how, out)
			}
		}
		if d := time.Since(began); d > 9*time.Second {
			t.Errorf("two aborts took %v: the ranks ended by themselves", d)
		}
	})
}

// overLoopback is for ranks on different nodes by name but on one machine.
var overLoopback = []string{"MUSTER_INTERFACE=lo"}
