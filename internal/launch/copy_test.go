//go:build !windows

package launch

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCopiedFiles(t *testing.T) {
	files, of := copiedFiles([]Program{{Prog: "a"}, {Prog: "b"}, {Prog: "a"}})
	if !reflect.DeepEqual(files, []string{"a", "b"}) || !reflect.DeepEqual(of, []int{0, 1, 0}) {
		t.Errorf("each file must be sent once: %v, %v", files, of)
	}
	for _, name := range []string{"", ".", "..", "/", "a/b", "../a"} {
		if _, _, _, err := readProgram(programBody(0, name, nil)); err == nil {
			t.Errorf("a program must not be written to %q", name)
		}
	}
}

// Agents that do not read delay their parent by one timeout, whatever their number.
func TestFlushAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make([]*branch, 16)
		for i := range stuck {
			stuck[i] = &branch{link: &link{queue: []byte("a frame")}}
		}
		begin := time.Now()
		if flushAll(stuck, copyTimeout); time.Since(begin) > copyTimeout+time.Second {
			t.Errorf("it took %v, want %v", time.Since(begin), copyTimeout)
		}
	})
}

// The programs need not exist on the hosts, and nothing remains of them.
func TestCopyProgram(t *testing.T) {
	here := filepath.Join(t.TempDir(), "first")
	there := t.TempDir()
	// Two and a half pieces: the script, and a comment behind it.
	script := "#!/bin/sh\necho \"$PMI_RANK $1 $(basename $0) $(case $0 in " + here + ") echo original;; esac)\"\nexit\n" + strings.Repeat("#", 5*copyPiece/2)
	if err := os.WriteFile(here, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho \"$PMI_RANK $1 $(basename $0)\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", there)
	for _, width := range []int{1, 3} {
		got := runJob(t, Config{
			Programs: []Program{{Ranks: 2, Prog: here, Args: []string{"x"}}, {Ranks: 1, Prog: other, Args: []string{"y"}}},
			Env:      os.Environ(), Remote: Remote{Copy: true, TreeWidth: width, RSH: sameMachine(t)}, Output: Output{Label: LabelNever},
			Hosts: []Host{{"a", 1}, {"b", 1}, {"c", 1}},
		})
		for _, want := range []string{"0 x first \n", "1 x first \n", "2 y other\n"} {
			if got.Status != 0 || got.err != "" || strings.Count(got.out, want) != 1 {
				t.Errorf("with a tree of width %d, %q must come once, from a copy: %+v", width, want, got)
			}
		}
	}
	if left, err := os.ReadDir(there); err != nil || len(left) > 0 {
		t.Errorf("the copies must be removed when the job has ended: %v, %v", left, err)
	}
	cfg := Config{Prog: here, Remote: Remote{Copy: true, RSH: []string{"env", "TMPDIR=/nowhere", "AGENT_OF={host}"}}, Env: os.Environ(), Hosts: []Host{{"a", 1}}}
	if text := failsToStart(t, cfg, soon); !strings.Contains(text, "host a: copy first: ") || !strings.Contains(text, "set TMPDIR") {
		t.Errorf("a host without space for copies must be named: %s", text)
	}
	cfg.Prog, cfg.Remote.RSH = "/no/such/program", sameMachine(t)
	if text := failsToStart(t, cfg, soon); !strings.Contains(text, "copy the program to the hosts: open /no/such/program") {
		t.Errorf("a missing program must be reported: %s", text)
	}
}
