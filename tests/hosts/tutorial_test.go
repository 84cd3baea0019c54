//go:build ofi && cgo && linux

package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/lab"
)

// TestTutorialOnFourHosts does what the tutorial does on hosts, which readme_test.go cannot
// without root: it builds the program of the page and runs the last commands, in a lab with
// a name of its own.
func TestTutorialOnFourHosts(t *testing.T) {
	if err := lab.Usable(); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile("../../docs/guide/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	program := regexp.MustCompile("(?ms)^```go\n(package main.*?)^```$").FindStringSubmatch(page)
	_, end, found := strings.Cut(page, "\n## Four hosts\n")
	commands := regexp.MustCompile("(?ms)^```console lab\n(.*?)^```$").FindStringSubmatch(end)
	if program == nil || !found || commands == nil {
		t.Fatal("the tutorial has no program, or no commands under \"Four hosts\"")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": program[1], "go.mod": "module kmeans\n\ngo 1.26\n\nrequire github.com/muster-mpi/muster v0.0.0\n\nreplace github.com/muster-mpi/muster => " + root + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(in, command string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), command, args...)
		cmd.Dir, cmd.Env = in, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off", "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", command, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(root, "go", "build", "-o", filepath.Join(dir, "muster"), "./cmd/muster")
	run(dir, "go", "build", "-o", "kmeans", ".")

	const name = "tutorial"
	t.Cleanup(func() { _ = exec.Command(filepath.Join(dir, "muster"), "lab", "down", "--name", name).Run() }) // it is down unless the test has failed
	ran, printed := 0, ""
	for line := range strings.Lines(commands[1]) {
		line = strings.TrimSpace(line)
		command, isCommand := strings.CutPrefix(line, "$ sudo ")
		if !isCommand {
			if !strings.Contains(printed, line+"\n") {
				t.Errorf("the page shows %q, the command prints\n%s", line, printed)
			}
			continue
		}
		command = strings.ReplaceAll(strings.ReplaceAll(command, "muster lab ", "muster lab --name "+name+" "), "--lab ", "--lab="+name+" ")
		printed = run(dir, "sh", "-ec", command)
		ran++
	}
	if ran != 3 {
		t.Errorf("%d commands were run, expected lab up, run and lab down", ran)
	}
}
