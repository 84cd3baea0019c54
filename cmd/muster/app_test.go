//go:build !windows

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/apps"
)

func TestAppRejectsBadArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"tetris"}, "app tetris: no application has this name"},
		{[]string{"cg", "--class", "Z"}, "it has the classes S, W, A"},
		{[]string{"cg", "--class", ""}, "it has the classes S, W, A"},
		{[]string{"cg", "-n", "0"}, "at least one rank"},
		{[]string{"cg", "mg"}, "accepts at most 1 arg"},
	} {
		got := muster(t, t.TempDir(), append([]string{"app"}, c.args...)...)
		if got.status == 0 || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("muster app %q must be refused with %q; got %+v", c.args, c.want, got)
		}
	}
}

func TestAppLists(t *testing.T) {
	got := muster(t, t.TempDir(), "app")
	for _, app := range apps.All() {
		if !strings.Contains(got.out, app.Name) || !strings.Contains(got.out, app.Summary) {
			t.Errorf("muster app does not list %s:\n%s", app.Name, got.out)
		}
	}
}

// TestAppRuns starts an application alone, by its own flag, and in a job.
func TestAppRuns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		ranks string
	}{
		{[]string{"app", "is"}, "1"},
		{[]string{"app", "is", "-n", "2"}, "2"},
		{[]string{"run", "-n", "2", self, "app", "is", "--class", "S"}, "2"},
	} {
		got := muster(t, t.TempDir(), c.args...)
		if n := strings.Count(got.out, "SUCCESSFUL"); got.status != 0 || n != 1 {
			t.Errorf("muster %q: want one verified result, got %d: %+v", c.args, n, got)
		}
		if want := "Total processes = " + strings.Repeat(" ", 23) + c.ranks; !strings.Contains(got.out, want) {
			t.Errorf("muster %q: no line %q in\n%s", c.args, want, got.out)
		}
	}
}
