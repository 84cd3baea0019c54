package pmi

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBoardShared(t *testing.T) {
	launcher, file, err := CreateBoard(3)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer launcher.Close()
	rank, err := OpenBoard(int(file.Fd()), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer rank.Close()
	w := WaitState{Op: "Recv", Comm: "world", Peer: 2, Tag: 9, Since: 1}
	rank.Waiting(1, w)
	if got := launcher.Row(1); got.Wait != w {
		t.Errorf("the launcher must see what the rank wrote: %+v", got)
	}
	launcher.MarkDead(Death{2, "here", "killed by SIGKILL"})
	if d, ok := rank.Death(0); !ok || d.Rank != 2 || d.Status != "killed by SIGKILL" {
		t.Errorf("the rank must see the death that the launcher wrote: %+v", d)
	}
}

func TestOpenBoardRejectsOtherFiles(t *testing.T) {
	_, file, err := CreateBoard(2)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	other, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Truncate(1 << 16); err != nil {
		t.Fatal(err)
	}
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer w.Close()
	for name, c := range map[string]struct{ fd, size int }{
		"too small a board":      {int(file.Fd()), 100},
		"a board for fewer":      {int(file.Fd()), 1},
		"a file without a magic": {int(other.Fd()), 2},
		"a pipe":                 {int(pipe.Fd()), 2},
		"a closed descriptor":    {1 << 20, 2},
		"no ranks":               {int(file.Fd()), 0},
	} {
		if _, err := OpenBoard(c.fd, c.size); err == nil {
			t.Errorf("%s must be refused", name)
		}
	}
}
