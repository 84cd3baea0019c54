package main

// A verbs benchmark between two hosts of a lab with slow or lossy cables. It starts one
// process on each host, with --listen and --dial.

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/lab"
)

// labPort is free on a host that was just created.
const labPort = 7000

// inLab reports whether the benchmark runs on hosts of a lab.
func (f *verbsFlags) inLab() bool { return f.rate != "" || f.loss != 0 }

func (f *verbsFlags) checkLab() error {
	if f.rate != "" {
		if _, err := lab.ParseRate(f.rate); err != nil {
			return fmt.Errorf("--rate: %w", err)
		}
	}
	if !(f.loss >= 0 && f.loss < 1) {
		return fmt.Errorf("--loss %g: use the share of packets that are lost, from 0 to below 1", f.loss)
	}
	return nil
}

func (f *verbsFlags) startInLab(cmd *cobra.Command) (err error) {
	if err := lab.Usable(); err != nil {
		return fmt.Errorf("--rate and --loss need network namespaces: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	l, err := lab.Create(lab.Config{Hosts: 2, Rate: f.rate, Loss: f.loss})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Remove()) }()
	meet := net.JoinHostPort(l.Addr(l.Hosts()[0], 0), strconv.Itoa(labPort))
	var started []interface{ Wait() error }
	for i, role := range []string{"--listen=", "--dial="} {
		host := l.Hosts()[i]
		c := l.Command(cmd.Context(), host, self, append(slices.Clone(os.Args[1:]), role+meet, "--address="+l.Addr(host, 0))...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			return fmt.Errorf("start a process on host %s: %w", host, err)
		}
		started = append(started, c)
	}
	for _, c := range started {
		err = errors.Join(err, c.Wait())
	}
	return err
}

// shareOfLink returns a bandwidth row as a percentage of the cable's speed.
func (f *verbsFlags) shareOfLink(row bench.VerbsRow) (bench.VerbsRow, bool) {
	bits, err := lab.ParseRate(f.rate)
	if f.rate == "" || err != nil || row.Unit != "MB/s" {
		return row, false
	}
	row.Metric, row.Unit, row.Cells = "link", "%", slices.Clone(row.Cells)
	for i := range row.Cells {
		c := &row.Cells[i]
		c.Values, c.Ratios = slices.Clone(c.Values), nil
		for k := range c.Values {
			c.Values[k] *= 8e6 / float64(bits) * 100
		}
	}
	return row, true
}
