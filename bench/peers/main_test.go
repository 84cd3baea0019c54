package main

import (
	"errors"
	"testing"
)

func TestFailedGroupsAreReported(t *testing.T) {
	if err := report([]outcome{{"a", "measured", nil}, {"b", "skipped", errors.New("no lab")}}); err != nil {
		t.Errorf("nothing failed, and the error is %v", err)
	}
	if err := report([]outcome{{"a", "measured", nil}, {"b", "failed", errors.New("no figure")}}); err == nil {
		t.Error("a failed table is no error")
	}
}

func TestCommandLineOfOneTable(t *testing.T) {
	got := commandLine("bw", []string{"-only", "latency,bw", "-rounds", "3", "--budget=14m", "-settle", "3s"})
	if want := "go run ./bench/peers -only bw -rounds 3 -settle 3s"; got != want {
		t.Errorf("the command is %q, want %q", got, want)
	}
}
