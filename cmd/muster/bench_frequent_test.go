//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// The registration benchmarks print all figures, on their default device and others.
func TestRegistrationBenchmarks(t *testing.T) {
	rdmatest.NeedLocking(t)
	for _, x := range []struct {
		args []string
		want []string
	}{
		{[]string{"bench", "reuse", "-m", "8K", "-i", "30"}, []string{"reuse-0-gain", "reuse-50", "reuse-100-theory", "none/full"}},
		{[]string{"bench", "reuse", "-m", "64K", "-i", "30", "--op", "put,get", "--device", "rd-strict"}, []string{"put-reuse-0-gain", "get-reuse-100-theory", "[copy again]", "[always]", "get-none/full"}},
		{[]string{"bench", "spectrum", "-m", "8K", "-i", "8"}, []string{"packed-gain", "paged-theory"}},
		{[]string{"bench", "spectrum", "-m", "8K", "-i", "8", "--op", "get"}, []string{"get-packed-gain", "get-paged-uses"}},
		{[]string{"bench", "reg", "--device", "rd-strict", "-m", "4K", "-i", "20"}, []string{"deregister", "from-cache", "copy"}},
		{[]string{"bench", "use-table", "-m", "1000", "-i", "2"}, []string{"Table of Buffer Uses"}},
		{[]string{"bench", "reuse", "--op", "isend", "-m", "8K", "-i", "45"}, []string{"isend-reuse-100-gain", "[copy again]", "isend-reuse-100-theory", "isend-reuse-100-direct"}},
	} {
		got := muster(t, t.TempDir(), x.args...)
		for _, w := range x.want {
			if got.status != 0 || !strings.Contains(got.out, w) {
				t.Errorf("muster %s prints no %s: %+v", strings.Join(x.args, " "), w, got)
			}
		}
	}
}

func TestRegistrationBenchmarkRejectsUnknownOp(t *testing.T) {
	got := muster(t, t.TempDir(), "bench", "reuse", "--op", "puts")
	if got.status == 0 || !strings.Contains(got.err, "puts is not among eager, isend, put, get") {
		t.Errorf("--op puts: %+v", got)
	}
}
