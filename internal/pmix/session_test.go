package pmix

import (
	"os"
	"strings"
	"testing"
	"time"
)

// tests/launchers tests sessions under real launchers.
func TestOpenWithoutLauncher(t *testing.T) {
	if os.Getenv("PMIX_RANK") != "" {
		t.Skip("this process was started by a PMIx launcher")
	}
	began := time.Now()
	s, err := Open()
	if err == nil {
		s.Close()
		t.Fatal("there is no server to connect to")
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("the error took %v", d)
	}
	want := "pmix: "
	if !Built {
		want = "-tags pmix"
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("the error must contain %q: %v", want, err)
	}
	// The library must leave signals to Go: a nil dereference is a panic.
	defer func() {
		if recover() == nil {
			t.Error("a nil dereference must panic")
		}
	}()
	var nothing *[4]int
	t.Log(nothing[len(os.Args)%4])
}
