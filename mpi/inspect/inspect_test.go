package inspect_test

import (
	"errors"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestExplainCoversAllSizes(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		choices, err := inspect.Explain(c, 1-c.Rank())
		if err != nil || len(choices) == 0 {
			t.Fatalf("Explain returns %v, error %v", choices, err)
		}
		next := 0
		for _, ch := range choices {
			if ch.Lo != next || ch.Hi < ch.Lo || ch.Protocol == "" {
				t.Errorf("%+v follows size %d", ch, next-1)
			}
			next = ch.Hi + 1
		}
		if last := choices[len(choices)-1]; last.Hi != inspect.MaxBytes {
			t.Errorf("the last protocol ends at %d bytes, want %d", last.Hi, inspect.MaxBytes)
		}
	})
}

func TestTrafficCountsMessages(t *testing.T) {
	t.Setenv("MUSTER_CHECK", "off") // check mode sends a description with each message
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		peer := 1 - c.Rank()
		before, err := inspect.Traffic(c, peer)
		if err != nil {
			t.Fatal(err)
		}
		in := make([]byte, 100)
		if _, err := mpi.Sendrecv(c, make([]byte, 100), peer, 0, in, peer, 0); err != nil {
			t.Fatal(err)
		}
		after, err := inspect.Traffic(c, peer)
		if err != nil || after.Sent != before.Sent+1 || after.BytesReceived != before.BytesReceived+100 {
			t.Errorf("counters before %+v, after %+v, error %v", before, after, err)
		}
	})
}

func TestInvalidRank(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		if _, err := inspect.Explain(c, 2); !errors.Is(err, mpi.ErrRank) {
			t.Errorf("Explain with rank 2 of 2: error %v", err)
		}
		if name := inspect.DeviceName(c, 2); name != "" {
			t.Errorf("rank 2 of 2 has the device %q", name)
		}
		if inspect.DeviceName(c, 1-c.Rank()) == "" {
			t.Error("the device of the peer has no name")
		}
		if s, err := inspect.Speculation(c, mpi.ProcNull); err != nil || s != (inspect.SpeculationStats{}) {
			t.Errorf("Speculation with ProcNull returns %+v, error %v", s, err)
		}
	})
}

func TestExplainCollective(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		p, err := inspect.ExplainCollective(c, "allreduce", 64<<10, 16)
		if err != nil || p.Algorithm == "" || p.Reason == "" || p.Seconds <= 0 {
			t.Errorf("ExplainCollective returns %+v, error %v", p, err)
		}
		for _, o := range p.Others {
			if o.Algorithm == p.Algorithm {
				t.Errorf("%s is among the others", o.Algorithm)
			}
		}
		if _, err := inspect.ExplainCollective(c, "nonsense", 1, 0); !errors.Is(err, mpi.ErrArg) {
			t.Errorf("an unknown collective: error %v", err)
		}
	})
}
