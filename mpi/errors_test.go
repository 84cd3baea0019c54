package mpi_test

// Contents of errors: class, call, peer, communicator, transport, and a remedy.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestInvalidArguments(t *testing.T) {
	mpitest.Sizes(t, []int{1, 3}, func(t *testing.T, c *mpi.Comm) {
		n := c.Size()
		buf := []int{1}
		for _, k := range []struct {
			what  string
			class mpi.Class
			err   error
			want  string
		}{
			{"Send", mpi.ErrRank, mpi.Send(c, buf, n, 1), fmt.Sprintf("no rank %d", n)},
			{"Send", mpi.ErrRank, mpi.Send(c, buf, -7, 1), "no rank -7"},
			{"Send", mpi.ErrRank, mpi.Send(c, buf, mpi.AnySource, 1), "no rank -1"},
			{"Send", mpi.ErrTag, mpi.Send(c, buf, 0, -1), "tag -1"},
			{"Send", mpi.ErrTag, mpi.Send(c, buf, 0, mpi.MaxTag+1), "0 to 2147483647"},
			{"Send", mpi.ErrTag, mpi.Send(c, buf, mpi.ProcNull, -9), "tag -9"},
			{"Ssend", mpi.ErrRank, mpi.Ssend(c, buf, n, 1), "ranks 0 to"},
			{"Rsend", mpi.ErrRank, mpi.Rsend(c, buf, n, 1), "ranks 0 to"},
			{"Bsend", mpi.ErrTag, mpi.Bsend(c, buf, 0, -4), "tag -4"},
			{"Isend", mpi.ErrRank, waitErr(mpi.Isend(c, buf, n, 1)), "ranks 0 to"},
			{"SendInit", mpi.ErrRank, waitErr(mpi.SendInit(c, buf, n, 1).Start()), "ranks 0 to"},
			{"RecvInit", mpi.ErrTag, waitErr(mpi.RecvInit(c, buf, 0, -2).Start()), "tag -2"},
			{"Recv", mpi.ErrRank, second(mpi.Recv(c, buf, n, 1)), "ranks 0 to"},
			{"Recv", mpi.ErrTag, second(mpi.Recv(c, buf, mpi.AnySource, -3)), "tag -3"},
			{"Irecv", mpi.ErrRank, waitErr(mpi.Irecv(c, buf, -5, 1)), "no rank -5"},
			{"Probe", mpi.ErrRank, second(c.Probe(n, 1)), "ranks 0 to"},
			{"Sendrecv", mpi.ErrRank, second(mpi.Sendrecv(c, buf, n, 1, buf, 0, 1)), "ranks 0 to"},
		} {
			e := wantClass(t, k.err, k.class, k.what)
			if e.Op != k.what || e.Rank != c.Rank() || e.Comm != "world" {
				t.Errorf("%s: error is of %s by rank %d on %q", k.what, e.Op, e.Rank, e.Comm)
			}
			for _, s := range []string{"mpi: " + k.what, "world", k.want} {
				if !strings.Contains(k.err.Error(), s) {
					t.Errorf("%s: error %q does not say %q", k.what, k.err, s)
				}
			}
			if errors.Is(k.err, mpi.ErrTruncate) {
				t.Errorf("%s: error is of every class", k.what)
			}
		}
		_, err := mpi.Sendrecv(c, buf, 0, 1, buf, n, 1)
		wantClass(t, err, mpi.ErrRank, "Sendrecv with a wrong source")
		if _, ok, _ := c.Iprobe(mpi.AnySource, mpi.AnyTag); ok {
			t.Error("a refused call has sent something")
		}
	})
}

// An error of a transfer names call, peer, communicator, tag, transport and bytes.
func TestErrorsOfTransfers(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		r := mpi.Irecv(c, make([]byte, 4), 0, 9)
		noError(t, mpi.Send(c, make([]byte, 6), 0, 9), "Send")
		err := waitErr(r)
		e := wantClass(t, err, mpi.ErrTruncate, "Irecv")
		if e.Op != "Irecv" || e.Peer != 0 || e.Tag != 9 || e.Bytes != 4 || e.Transport == "" {
			t.Errorf("error holds %+v", *e)
		}
		for _, s := range []string{"mpi: Irecv with rank 0 on world, tag 9, over " + e.Transport, "4 bytes done", "larger buffer"} {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("error %q does not say %q", err, s)
			}
		}
	})
}

func TestClassNames(t *testing.T) {
	for class, want := range map[mpi.Class]string{
		mpi.ErrTruncate: "mpi: message truncated", mpi.ErrRank: "mpi: rank", mpi.Class(61): "mpi: error class 61",
	} {
		if class.Error() != want {
			t.Errorf("class %d is called %q, want %q", int(class), class.Error(), want)
		}
	}
}

func TestConfigFromEnvironment(t *testing.T) {
	cfg, err := mpi.ConfigFromEnv([]string{"PATH=/bin", "MUSTER_EAGER_LIMIT=1000", "MUSTER_RENDEZVOUS=put",
		"MUSTER_SPECULATE=always", "MUSTER_NO_PROCESS_VM=1", "MUSTER_START_TIMEOUT=90s", "MUSTER_BOARD_FD=3"})
	noError(t, err, "ConfigFromEnv")
	if cfg.EagerLimit != 1000 || cfg.Advanced.Rendezvous != "put" || cfg.Advanced.Speculate != "always" || !cfg.Advanced.NoProcessVM || cfg.StartTimeout.Seconds() != 90 {
		t.Errorf("got %+v", *cfg)
	}
	for env, want := range map[string]string{
		"MUSTER_EAGER_LIMT=1":     "did you mean MUSTER_EAGER_LIMIT",
		"MUSTER_EAGER_LIMIT=many": "whole number",
		"MUSTER_RENDEZVOUS=post":  "get, put or coop",
		"MUSTER_SPECULATE=maybe":  "auto, always or never",
		"MUSTER_START_TIMEOUT=5":  "90s",
		"MUSTER_NO_MEMFD=perhaps": "1 or 0",
		"MUSTER_SPIN=-3":          "want more than 0, or 0 for the default: 1000, 20 while",
		"MUSTER_X=1":              "mpi.Config",
	} {
		if _, err := mpi.ConfigFromEnv([]string{env}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v; want an error that says %q", env, err, want)
		}
	}
	if _, err := mpi.Local(0, nil); !errors.Is(err, mpi.ErrArg) {
		t.Errorf("a job of no ranks: %v", err)
	}
}
