package main

// muster top: a screen of the ranks of a running job, from what muster run --metrics serves.
// top_screen.go formats it.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// topAddress is where top looks for a job by default.
const topAddress = "localhost:9100"

type topFlags struct {
	every time.Duration
	once  bool
	rows  int
	sort  string
}

func newTopCommand() *cobra.Command {
	f := topFlags{every: time.Second, rows: 20, sort: topByWait}
	cmd := &cobra.Command{
		Use:   "top [ADDR]",
		Short: "Show the ranks of a running job: calls, rates, waits, hosts",
		Long: `top shows the ranks of a job that was started with muster run --metrics ADDR, and the
call in which each of them waits, until the job ends or Ctrl-C. Without ADDR it is
` + topAddress + `.

Rates are those of about three seconds. Ranks that wait longest are first; --sort rank, sent,
received or cpu changes that. The hosts are listed below the ranks if there are several.
On a terminal the screen is redrawn, otherwise screens follow each other.`,
		Example: `  muster run -n 8 --metrics localhost:9100 ./prog &
  muster top
  muster top --once
  muster top node7:9100 --sort rank --rows 64`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			addr := topAddress
			if len(args) > 0 {
				addr = args[0]
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if err := f.run(ctx, cmd.OutOrStdout(), addr); err != nil {
				return fmt.Errorf("top: %w", err)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.DurationVar(&f.every, "every", f.every, "time between two screens")
	fl.BoolVar(&f.once, "once", false, "print one screen and end")
	fl.IntVar(&f.rows, "rows", f.rows, "show at most this number of ranks")
	fl.StringVar(&f.sort, "sort", f.sort, "order of the ranks: wait, rank, sent, received, cpu")
	offerValues(cmd, "sort", "wait, rank, sent, received, cpu")
	return cmd
}

func (f *topFlags) run(ctx context.Context, w io.Writer, addr string) error {
	if f.every < 100*time.Millisecond {
		return fmt.Errorf("--every %v: use at least 100ms; ranks update their counters once a second", f.every)
	}
	if topOrder(f.sort) == nil {
		return fmt.Errorf("--sort %s: use wait, rank, sent, received or cpu", f.sort)
	}
	begin, end := "", ""
	if onTerminal(w) && !f.once {
		// ECMA-48: cursor home (CUP), and erase what is below the screen (ED).
		begin, end = "\x1b[H\x1b[2J", "\x1b[J"
	}
	var past jobHistory
	for {
		now, err := readJob(ctx, addr)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && past != nil && errors.Is(err, errNoJob):
			fmt.Fprintln(w, "the job has ended")
			return nil
		case err != nil:
			return err
		}
		if past.add(now) && len(past) > 1 && (!f.once || now.at.Sub(past[0].at) >= rateSpan) {
			begin = strings.TrimSuffix(begin, "\x1b[2J") // without flicker
			text := now.screen(past[0], f.sort, f.rows)
			if begin != "" {
				text = strings.ReplaceAll(text, "\n", "\x1b[K\n")
			}
			fmt.Fprint(w, begin, text, end)
			if f.once {
				return nil
			}
			if begin == "" {
				fmt.Fprintln(w)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(f.every):
		}
	}
}

// errNoJob means that nobody serves metrics at the address.
var errNoJob = errors.New("no job serves its metrics there")

// readJob reads the metrics of a job.
func readJob(ctx context.Context, addr string) (*jobSample, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("%s: %w; give host and port, as in muster run --metrics %s", addr, err, topAddress)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if os.IsTimeout(err) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: start it with: muster run --metrics %s ./prog (%v)", errNoJob, addr, err)
	}
	defer response.Body.Close()
	return parseMetrics(response.Body, time.Now())
}
