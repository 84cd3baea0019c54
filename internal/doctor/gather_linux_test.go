package doctor

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// The text is that of a little-endian machine.
func TestParseRoutes(t *testing.T) {
	got := parseRoutes(`Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
short
`)
	want := []Route{{To: "default", Via: "192.0.2.1", Interface: "eth0"}, {To: "192.0.2.0/24", Interface: "eth0"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestChosen(t *testing.T) {
	for text, want := range map[string]string{"always [madvise] never": "madvise", "[never]": "never", "": "", "odd": ""} {
		if got := readChoice(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestProcessVMDenied(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root, and setpriv to drop capabilities (Debian package util-linux)")
	}
	t.Setenv(asProgram, "1")
	const script = `case "$1" in reader) exec setpriv --bounding-set=-sys_ptrace "$0" "$1";; *) exec "$0" "$1";; esac`
	f := healthy()
	f.ProcessVM.Error = tryProcessVM(bounded(t), []string{"sh", "-c", script, os.Args[0]})
	if f.ProcessVM.Error != "process_vm_readv: operation not permitted" {
		t.Fatalf("the trial ended with %q", f.ProcessVM.Error)
	}
	expect(t, &Survey{Hosts: []Visit{{Name: "a", Facts: f}}}, "process_vm", Warning, "not permitted", "security module")
}
