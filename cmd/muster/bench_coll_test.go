//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestBenchCollRejectsBadFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--op", "gossip"}, "use one of allgather, allreduce"},
		{[]string{"--mif", "-1"}, "maximum delay"},
		{[]string{"--late", "25"}, "such as 25%"},
		{[]string{"--late", "0%"}, "such as 25%"},
		{[]string{"--algorithm", "direct,direct"}, "given twice"},
		{[]string{"--op", "alltoall", "--algorithm", "teleport"}, "alltoall has no algorithm \"teleport\"; it has"},
		{[]string{"--message", "0s"}, "such as 30us"},
		{[]string{"--message", "1us,2us,3us"}, "3 times for 2 sizes"},
		{[]string{"--budget", "0s"}, "above 0"},
		{[]string{"--away", "dream"}, "compute, sleep or auto"},
	} {
		got := muster(t, t.TempDir(), append([]string{"bench", "coll", "-n", "2"}, c.args...)...)
		if got.status == 0 || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("muster bench coll %q must be refused with %q; got %+v", c.args, c.want, got)
		}
	}
}

func TestBenchCollComparesAlgorithmsUnderSkew(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "bench", "coll", "-n", "3", "--op", "alltoall", "--mif", "2", "--late", "random,50%", "--sizes", "8,1K",
		"--algorithm", "default,direct", "--message", "20us", "-i", "10", "--plot", "late.svg")
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if !regexp.MustCompile(`(?m)^# 3 ranks over shm; a delayed rank (computes|sleeps); times in us$`).MatchString(got.out) {
		t.Errorf("the header is missing: %s", got.out)
	}
	rows := regexp.MustCompile(`(?m)^ *alltoall +(8|1024) +(mif-2|mif-2-late-50) +(default|direct) +10( +[0-9.]+){6}$`).FindAllString(got.out, -1)
	if len(rows) != 8 {
		t.Errorf("got %d rows, want 8:\n%s", len(rows), got.out)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "late.svg"))
	if err != nil || strings.Count(string(svg), "<polyline") != 4 {
		t.Errorf("the picture is %v %s", err, svg)
	}
}
