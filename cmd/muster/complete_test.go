//go:build !windows

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// complete returns what the shell would offer for a command line.
func complete(t *testing.T, words ...string) []string {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	root.SetArgs(append([]string{"__completeNoDesc"}, words...))
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[:len(lines)-1] // the last is the directive
}

func TestCompletionOfValues(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config": "Host node1 node2 web*\n  User x\n", "known_hosts": "node3,10.0.0.3 ssh-ed25519 AAAA\n|1|abc= ssh-rsa AAAA\n"} {
		if err := os.WriteFile(filepath.Join(home, ".ssh", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		words []string
		want  []string // all of them
		some  string   // or at least this one
	}{
		{words: []string{"run", "--hosts", "node"}, want: []string{"node1", "node2", "node3"}},
		{words: []string{"run", "--hosts", "node1,node2"}, want: []string{"node1,node2"}},
		{words: []string{"run", "--host", "node"}, want: []string{"node1", "node2", "node3"}},
		{words: []string{"run", "--bind-to", ""}, want: []string{"auto", "core", "socket", "numa", "none"}},
		{words: []string{"run", "--bind", ""}, want: []string{"auto", "core", "socket", "numa", "none"}},
		{words: []string{"run", "--map-by", "node,"}, want: []string{"node,slot", "node,node", "node,traffic=", "node,socket", "node,numa", "node,core"}},
		{words: []string{"run", "--label", "a"}, want: []string{"auto", "always"}},
		{words: []string{"sched", "allgather", "--algorithm", "bru"}, want: []string{"bruck"}},
		{words: []string{"tune", "--collectives", "bcast,allre"}, want: []string{"bcast,allreduce"}},
		{words: []string{"lab", "cut", "a"}, want: []string{"all"}},
		{words: []string{"explain", "allr"}, some: "allreduce"},
		{words: []string{"bench", "latency", "--device", "rc-"}, want: []string{"rc-posted", "rc-rings", "rc-few", "rc-strict", "rc-encrypted"}},
		{words: []string{"bench", "verbs-latency", "--device", "rc-"}, want: []string{"rc-nocrc", "rc-tls"}},
		{words: []string{"bench", "reuse", "--op", "p"}, some: "put"},
		{words: []string{"bench", "coll", "--op", "allt"}, want: []string{"alltoall"}},
		{words: []string{"bench", "allreduce", "--algorithm", "bru"}},
	} {
		got := complete(t, tt.words...)
		if tt.some == "" && !slices.Equal(got, tt.want) || tt.some != "" && !slices.Contains(got, tt.some) {
			t.Errorf("muster %s: offers %q, want %q%q", strings.Join(tt.words, " "), got, tt.want, tt.some)
		}
	}
}

func TestManual(t *testing.T) {
	dir := t.TempDir()
	if err := writeManual(dir, newRoot()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"muster.1":         {".TH MUSTER 1", "muster\\-run(1)"},
		"muster-run.1":     {".SH SYNOPSIS", `.B \-n, \-\-ranks int`, ".SH EXAMPLES"},
		"muster-lab-cut.1": {".SH NAME\nmuster\\-lab\\-cut"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range want {
			if !strings.Contains(string(text), s) {
				t.Errorf("%s must contain %q:\n%s", name, s, text)
			}
		}
	}
}
