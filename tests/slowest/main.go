// Command slowest runs go test, with the output of go test, and records how long each test
// took, for the list at the end of .ci/run.
//
//	slowest -record bin/times go test -timeout 60s ./...
//	slowest -show bin/times
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	record := flag.String("record", "", "run a go test and add the times of its tests to this file")
	show := flag.String("show", "", "print the slowest tests of this file")
	count := flag.Int("n", 10, "how many to print")
	flag.Parse()
	status, err := 0, error(nil)
	switch {
	case *record != "":
		status, err = recordTests(*record, flag.Args(), os.Stdout)
	case *show != "":
		err = showSlowest(*show, *count, os.Stdout)
	default:
		flag.Usage()
		status = 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// recordTests runs a command that begins with "go test" and returns its status.
func recordTests(file string, command []string, out io.Writer) (int, error) {
	i := slices.Index(command, "test")
	if i < 1 {
		return 2, fmt.Errorf("%q is no go test", strings.Join(command, " "))
	}
	cmd := exec.Command(command[0], slices.Insert(slices.Clone(command[1:]), i, "-json")...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	// The title of the step, as the same test runs in several.
	r := &reader{out: out, verbose: slices.Contains(command, "-v"), step: os.Getenv("CI_STEP")}
	readErr := r.read(stdout)
	runErr := cmd.Wait()
	status := cmd.ProcessState.ExitCode()
	if runErr != nil && status <= 0 {
		return 1, runErr // ended by a signal
	}
	if readErr != nil {
		return max(status, 1), readErr
	}
	return status, appendTimes(file, r.times)
}
