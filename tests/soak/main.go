package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

func main() {
	limit := flag.Duration("time", 3*time.Minute, "how long to run; the last round may exceed it")
	seed := flag.Uint64("seed", 0, "seed of the first round; the next has the next number; 0: a new one")
	rounds := flag.Int("rounds", 0, "number of rounds; 0: no limit")
	only := flag.String("class", "", "run only rounds of this class: "+strings.Join(classes(), ", "))
	bin := flag.String("bin", "", "directory for binaries and for the output of violations")
	keep := flag.Bool("continue", false, "continue after a violation")
	verbose := flag.Bool("v", false, "print the output of all rounds")
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(rand.Uint32())
	}
	if err := lab.Usable(); err != nil {
		fmt.Println("skipped:", err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := soak{bin: *bin, verbose: *verbose}
	if err := s.build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("soak: seed %d, for %v\n", *seed, *limit)
	violations := s.loop(ctx, *seed, *limit, *rounds, *only, *keep)
	fmt.Printf("soak: %d rounds, %d violations\n", s.done, violations)
	if violations > 0 {
		os.Exit(1)
	}
}

// slow is how long a round may take beyond its duration before its output is shown.
const slow = 9 * time.Second

type soak struct {
	bin     string
	verbose bool
	done    int
}

// build builds the launcher and the program.
func (s *soak) build() error {
	var err error
	if s.bin == "" {
		if s.bin, err = os.MkdirTemp("", "muster-soak-"); err != nil {
			return err
		}
	}
	if s.bin, err = filepath.Abs(s.bin); err != nil {
		return err
	}
	for name, source := range map[string]string{"muster-soak": "./cmd/muster", "soak-rank": "./tests/soak/rank"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(s.bin, name), source).CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", source, err, out)
		}
	}
	return nil
}

func (s *soak) loop(ctx context.Context, seed uint64, limit time.Duration, rounds int, only string, keep bool) (violations int) {
	begin := time.Now()
	for ; ctx.Err() == nil && (rounds == 0 || s.done < rounds) && (time.Since(begin) < limit || rounds > 0); seed++ {
		r := newRound(seed)
		if only != "" && r.class != only {
			continue
		}
		s.done++
		start := time.Now()
		out, status, err := s.run(ctx, r)
		for again := 0; again < 2 && broken(out, status) && ctx.Err() == nil; again++ {
			fmt.Printf("seed %d: once more, because the lab has failed: %s\n", seed, out[max(0, len(out)-300):])
			out, status, err = s.run(ctx, r)
		}
		if ctx.Err() != nil {
			return violations
		}
		problem := r.judge(out, status)
		if err != nil {
			problem = err.Error()
		}
		fmt.Printf("%5.0fs seed %d: %v: status %d after %.1fs\n", time.Since(begin).Seconds(), seed, r, status, time.Since(start).Seconds())
		if problem == "" && time.Since(start) > r.duration+slow {
			fmt.Printf("%s\tslow\n", out) // not wrong, but worth a look
		}
		if s.verbose || problem != "" {
			fmt.Printf("%s\n", out)
		}
		if problem != "" {
			violations++
			file := filepath.Join(s.bin, fmt.Sprintf("soak-%d.log", seed))
			if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
				fmt.Println(err)
			}
			fmt.Printf("VIOLATION, seed %d: %s\n\trepeat: make soak SEED=%d ROUNDS=1\n\toutput: %s\n", seed, problem, seed, file)
			if !keep {
				return violations
			}
		}
	}
	return violations
}

// run executes a round and returns its output and exit status.
func (s *soak) run(ctx context.Context, r round) (string, int, error) {
	// The command has its own limit and reports a hang with stacks; this one is for a defect
	// of the command.
	ctx, cancel := context.WithTimeout(ctx, r.duration+hang+2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "muster-soak"), r.args(filepath.Join(s.bin, "soak-rank"))...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	if err != nil {
		return out.String(), -1, err
	}
	return out.String(), cmd.ProcessState.ExitCode(), nil
}
