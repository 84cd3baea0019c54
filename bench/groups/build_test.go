package groups

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBareProviderPrintsAllFigures(t *testing.T) {
	if _, err := twoCPUs(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bin := binaries{bare: filepath.Join(t.TempDir(), "ofi_bare")}
	groups, err := selectGroups(Options{Only: "ofi"})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range groups {
		if err := g.obstacle([]program{bareProgram}); err != nil {
			t.Skip(err)
		}
		if i == 0 {
			if err := buildBare(ctx, "loops", bin.bare); err != nil {
				t.Fatal(err)
			}
		}
		cmd := g.command(bare, bin, hostSet{})
		cmd.argv = append(cmd.argv, "-i", "20")
		out, err := runBounded(ctx, 30*time.Second, cmd)
		if err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		values, err := g.figures(out, "value")
		if err != nil {
			t.Fatalf("%s: %v in\n%s", g.name, err, out)
		}
		for k, v := range values {
			if v <= 0 {
				t.Errorf("%s: %s is %v", g.name, g.lines[k].title, v)
			}
		}
	}
}

func TestErrorNamesUnknownProvider(t *testing.T) {
	g := &group{transport: transport{over: network}}
	if err := g.obstacle([]program{bareProgram}); err != nil {
		t.Skip(err)
	}
	bin := filepath.Join(t.TempDir(), "ofi_bare")
	if err := buildBare(t.Context(), "loops", bin); err != nil {
		t.Fatal(err)
	}
	out, err := runBounded(t.Context(), 30*time.Second, command{argv: []string{bin, "latency", "-f", "smoke-signals"}})
	if err == nil || !strings.Contains(err.Error(), "provider smoke-signals: it offers") {
		t.Errorf("got %q and the error %v, want one that names provider and call", out, err)
	}
}
