package muster_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every command in the console blocks of these pages is executed, in order, in a temporary
// directory. A Go block that is a whole file is saved there first, as main.go, or as
// main_test.go if it imports testing. Lines below a command must be among the lines that it
// prints, in any order; a line "..." stands for any others.
//
// The test does not use the network. go install and go get use a module proxy made from
// this tree, with the release of VERSION as the only version, and the module cache of this
// machine for the other modules. muster is installed before the first command.
var executedPages = []string{"README.md", "docs/guide/start.md", "docs/guide/tutorial.md"}

const readmeLines = 120

func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > readmeLines {
		t.Errorf("README.md has %d lines, want at most %d", n, readmeLines)
	}
}

func TestCommandsOfPages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds muster")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	if err := makeProxy(proxy, root); err != nil {
		t.Fatal(err)
	}
	modules := t.TempDir() // one folder, so that a package is compiled once
	for i, page := range executedPages {
		t.Run(strings.ReplaceAll(page, "/", "-"), func(t *testing.T) {
			if i > 0 { // the first page compiles what the others find in the build cache
				t.Parallel()
			}
			runPage(t, page, proxy, modules)
		})
	}
}

func runPage(t *testing.T, page, proxy, modules string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "hello")
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &pageRun{proxy: proxy, modules: modules, dir: dir, bin: bin}
	if err := r.run(t, shownCommand{line: "go install " + module + "/cmd/muster@latest"}); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range fencesOf(string(text)) {
		switch block.info {
		case "go":
			if !strings.HasPrefix(block.text, "package ") {
				continue
			}
			name := "main.go"
			if strings.Contains(block.text, `"testing"`) {
				name = "main_test.go"
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(block.text), 0o644); err != nil {
				t.Fatal(err)
			}
		case "console":
			for _, c := range commandsOf(block.text) {
				ran++
				if err := r.run(t, c); err != nil {
					t.Fatalf("%s: $ %s\n%v", page, c.line, err)
				}
			}
		}
	}
	if ran == 0 {
		t.Errorf("%s has no commands", page)
	}
}

type fence struct{ info, text string }

var fencePattern = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

func fencesOf(text string) (fences []fence) {
	for _, m := range fencePattern.FindAllStringSubmatch(text, -1) {
		fences = append(fences, fence{m[1], m[2]})
	}
	return fences
}

type shownCommand struct {
	line   string
	output []string
}

func commandsOf(text string) (commands []shownCommand) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, shownCommand{line: command})
		} else if n := len(commands); n > 0 && line != "..." && line != "" {
			commands[n-1].output = append(commands[n-1].output, line)
		}
	}
	return commands
}

type pageRun struct{ proxy, modules, dir, bin string }

func (r *pageRun) run(t *testing.T, c shownCommand) error {
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", c.line)
	cmd.Dir = r.dir
	cmd.WaitDelay = 10 * time.Second
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MUSTER_") && !strings.HasPrefix(kv, "PMI") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	downloads, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	others := filepath.Join(strings.TrimSpace(string(downloads)), "cache", "download")
	cmd.Env = append(cmd.Env, "PATH="+r.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GOBIN="+r.bin,
		"GOFLAGS=-modcacherw -buildvcs=false", "GOPROXY=file://"+r.proxy+",file://"+others, "GOSUMDB=off",
		"GOMODCACHE="+r.modules, "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	printed := strings.Split(string(out), "\n")
	for i := range printed {
		printed[i] = strings.TrimRight(printed[i], " ")
	}
	for _, want := range c.output {
		if !slices.Contains(printed, want) {
			return errors.Join(errors.New("does not print: "+want), errors.New(string(out)))
		}
	}
	return nil
}
