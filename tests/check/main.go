// Command check is what to run before each commit (make check): it builds and vets the tree,
// and runs the house rules and the short tests of the packages that have changed and of those
// that import them, in 90 s. Packages for which there is no time left are named; .ci/run tests
// all of them.
//
// What has changed is compared with the commit at which the branch left main, and includes
// files that are not committed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	base := flag.String("base", "", "compare with this commit (default: where the branch left main)")
	budget := flag.Duration("budget", 85*time.Second, "start no tests of other packages, and end those that run, after this time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	began := time.Now()
	err := check(ctx, *base, began.Add(*budget))
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
	}
	fmt.Printf("check: %d s\n", int(time.Since(began).Seconds()))
	if err != nil {
		os.Exit(1)
	}
}

func check(ctx context.Context, base string, deadline time.Time) error {
	files, err := changedFiles(ctx, base)
	if err != nil {
		return err
	}
	if err := checkFormat(ctx, files); err != nil {
		return err
	}
	for _, command := range []string{"go build ./...", "go vet ./..."} {
		if err := run(ctx, command); err != nil {
			return err
		}
	}
	list, err := packages(ctx)
	if err != nil {
		return err
	}
	changed, importers := findAffected(list, files)
	fmt.Printf("check: %d packages have changed, %d import them\n", len(changed), len(importers))
	// The tests of the tree are the house rules; they always run.
	if err := run(ctx, "go test -short . "+strings.Join(changed, " ")); err != nil {
		return err
	}
	left, err := testInTime(ctx, importers, deadline)
	if len(left) > 0 {
		fmt.Println("check: no time for", strings.Join(left, " "))
	}
	return err
}

// checkFormat reports Go files that gofmt would change.
func checkFormat(ctx context.Context, files []string) error {
	args := []string{"-l"}
	for _, f := range files {
		if _, err := os.Stat(f); err == nil && strings.HasSuffix(f, ".go") {
			args = append(args, f)
		}
	}
	if len(args) == 1 {
		return nil
	}
	out, err := exec.CommandContext(ctx, "gofmt", args...).CombinedOutput()
	if err != nil || len(out) > 0 {
		return errors.Join(err, fmt.Errorf("not formatted, run gofmt -w on:\n%s", out))
	}
	return nil
}

// run runs a command, and ends what it has started if ctx ends.
func run(ctx context.Context, command string) error {
	fmt.Println(command)
	words := strings.Fields(command)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.WaitDelay = 5 * time.Second
	endGroup(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// atOnce is how many packages are tested by one command, which compiles the next while one
// runs.
const atOnce = 4

// testInTime runs the tests of packages until the deadline, and returns those that have not
// ended then.
func testInTime(ctx context.Context, list []string, deadline time.Time) (left []string, err error) {
	timed, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for len(list) > 0 && timed.Err() == nil {
		n := min(atOnce, len(list))
		err := run(timed, "go test -short "+strings.Join(list[:n], " "))
		if timed.Err() != nil {
			break
		}
		if err != nil {
			return list[n:], err
		}
		list = list[n:]
	}
	return list, ctx.Err()
}
