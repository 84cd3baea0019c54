//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTranslateMpiexec(t *testing.T) {
	t.Setenv("SET", "1")
	for in, want := range map[string]string{
		"-n 4 ./p -n 5":                                       "--ranks=4 ./p -n 5",
		"--np=4 -- ./p":                                       "--ranks=4 ./p",
		"-f hosts -ppn 2 p":                                   "--hostfile=hosts --ranks-per-host=2 p",
		"--host a:2,b:2 --oversubscribe -N 1 p":               "--hosts=a:2,b:2 --oversubscribe --ranks-per-host=1 p",
		"-genv A 1 -x B=2 -x C -genvlist SET,UNSET p":         "--env=A=1 --env=B=2 --env=C --env=SET p",
		"--bind-to core:overload-allowed p":                   "--bind-to=core p",
		"--map-by ppr:2:node -bind-to hwthread p":             "--ranks-per-host=2 --bind-to=core p",
		"--map-by node:OVERSUBSCRIBE p":                       "--map-by=node --oversubscribe p",
		"--mca btl self,vader -mca btl_tcp_if_include eth0 p": "--env=MUSTER_INTERFACE=eth0 p",
		"-timeout 10 -l -allow-run-as-root p":                 "--timeout=10s --label=always p",
		"-n 1 -wdir /tmp a : -n 2 b x : -n 1 -wdir / c":       "--ranks=1 --wdir=/tmp a : --ranks=2 --wdir=. b x : --ranks=1 --wdir=/ c",
		"-n 1 a : -n 1 -env X 1 b":                            "--ranks=1 a : --ranks=1 --env=X=1 b",
	} {
		got, err := translateMpiexec(strings.Fields(in))
		if text := strings.Join(got, " "); err != nil || text != "--label=never "+want {
			t.Errorf("mpiexec %s is run %s (%v), want %s", in, text, err, want)
		}
	}
	for in, want := range map[string]string{
		"-n 4": "no program", "-configfile x p": "unknown option -configfile", "--oversubscribe=1 p": "unknown option --oversubscribe=1",
		"-genv A": "needs 1 more", "-map-by ppr:1:socket p": "only ppr:N:node", "-bind-to socket:PE=2 p": `no modifier "pe=2"`,
		"-launcher slurm p": "-launcher slurm", "-n 1 -env X 1 a : -n 1 b": "use -genv", "-n 1 a :": "no program",
	} {
		if got, err := translateMpiexec(strings.Fields(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mpiexec %s must be refused with %q: %v, %v", in, want, got, err)
		}
	}
}

// The flags that the table makes are flags of muster run.
func TestMpiexecFlagsExist(t *testing.T) {
	run := newRunCommand().Flags()
	for _, o := range mpiexecOptions() {
		flags, err := o.flags([]string{"ssh", "1"})
		if err != nil {
			t.Errorf("-%s: %v", o.names, err)
		}
		for _, f := range flags {
			name, _, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
			if run.Lookup(name) == nil {
				t.Errorf("-%s becomes %s, which is no flag of muster run", o.names, f)
			}
		}
	}
}

func TestMpiexec(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "mpiexec", "-n", "1", "-genv", "A", "all", "sh", "-c", "echo one $A $PMI_SIZE", ":", "-np", "2", "-env", "B", "own", "sh", "-c", "echo two $A $B")
	if got.status != 0 || !strings.Contains(got.out, "one all 3\n") || strings.Count(got.out, "two all own\n") != 2 {
		t.Errorf("two programs must be one job: %+v", got)
	}
	if got := muster(t, dir, "mpiexec", "-n", "2", "sh", "-c", "exit 7"); got.status != 7 {
		t.Errorf("the status must be that of the ranks: %+v", got)
	}
	if got := muster(t, dir, "mpiexec", "-no-such", "true"); got.status != 2 || !strings.Contains(got.err, "muster: mpiexec: unknown option -no-such") {
		t.Errorf("an unknown option must be refused: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte("a slots=9\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = muster(t, dir, "mpiexec", "-f", "hosts", "-ppn", "1", "-launcher-exec", here, "sh", "-c", "echo $PMI_RANK on $ON")
	if got.status != 0 || !strings.Contains(got.out, "0 on a\n") || !strings.Contains(got.out, "1 on b\n") || strings.Count(got.out, "\n") != 2 {
		t.Errorf("there must be one rank on each host: %+v", got)
	}
	got = muster(t, dir, "mpiexec", "-n", "4", "-host", "a:1,b:1", "--oversubscribe", "-launcher-exec", here, "sh", "-c", "echo $PMI_RANK on $ON")
	if got.status != 0 || !strings.Contains(got.out, "1 on a\n") || !strings.Contains(got.out, "2 on b\n") {
		t.Errorf("more ranks than slots must fit: %+v", got)
	}
	if got := muster(t, dir, "mpiexec", "-ppn", "3", "sh", "-c", "echo x"); got.status != 0 || strings.Count(got.out, "x\n") != 3 {
		t.Errorf("without hosts -ppn is the number of ranks: %+v", got)
	}
}
