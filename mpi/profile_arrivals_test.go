package mpi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// arrivalsOf runs a program and returns its profile.
func arrivalsOf(t *testing.T, ranks int, program func(c *mpi.Comm) error) *prof.Arrivals {
	t.Helper()
	file := filepath.Join(t.TempDir(), "arrivals.json")
	profiled(t, ranks, &mpi.Config{Profile: "arrivals:" + file}, nil, program)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := prof.DecodeArrivals(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lateRank makes the last rank late for a call by a given time.
func lateRank(c *mpi.Comm, away time.Duration) error {
	last := c.Size() - 1
	if c.Rank() == 0 {
		return mpi.Send(c, []byte{1}, last, 1)
	}
	if c.Rank() == last {
		if _, err := mpi.Recv(c, []byte{0}, 0, 1); err != nil {
			return err
		}
		time.Sleep(away) // real time, which the profile measures
	}
	return nil
}

func TestArrivalsOfCallSites(t *testing.T) {
	const ranks, calls, away = 4, 8, 20 * time.Millisecond
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("clocks apart %v", apart), func(t *testing.T) {
			all := arrivalsOf(t, ranks, func(c *mpi.Comm) error {
				if apart {
					if err := mpi.SetClockAhead(c, time.Duration(c.Rank())*time.Hour); err != nil {
						return err
					}
				}
				half, err := c.Split(c.Rank()%2, 0)
				if err != nil {
					return err
				}
				sum, blocks := make([]float64, 128), make([]byte, 3*half.Size())
				for range calls {
					if err := lateRank(c, away); err != nil {
						return err
					}
					if err := mpi.Allreduce(c, sum, sum, mpi.Sum); err != nil {
						return err
					}
					if err := mpi.Allgather(half, blocks[:3], blocks); err != nil {
						return err
					}
				}
				return nil
			})
			if all.Ranks != ranks || all.Hosts != 1 || all.Lost != 0 || (all.ClockError > 0) != apart {
				t.Errorf("%d ranks on %d hosts, %d records lost, clocks to within %d ns", all.Ranks, all.Hosts, all.Lost, all.ClockError)
			}
			found := map[string]prof.SiteArrivals{}
			for _, s := range all.Sites() {
				found[s.Routine] = s
			}
			sum, gather := found["Allreduce"], found["Allgather"]
			if sum.Calls != calls || sum.Bytes != 1024 || !strings.HasPrefix(sum.Site, "mpi/profile_arrivals_test.go:") {
				t.Errorf("%d calls of Allreduce with %g bytes at %s; want %d, 1024, this file", sum.Calls, sum.Bytes, sum.Site, calls)
			}
			// There are two communicators of half of the ranks.
			if gather.Calls != 2*calls || gather.Bytes != 3 || gather.Site == sum.Site {
				t.Errorf("%d calls of Allgather with %g bytes at %s; want %d, 3, another place", gather.Calls, gather.Bytes, gather.Site, 2*calls)
			}
			// A rank may be descheduled, but hardly for so long and each time.
			if worst := time.Duration(sum.Worst); worst < away/2 || worst > time.Minute {
				t.Errorf("the ranks come to Allreduce %v apart, want %v", worst, away)
			}
			if sum.InCall <= 0 || sum.Tail <= 0 || sum.Message <= 0 || sum.WorstFactor < sum.AverageFactor {
				t.Errorf("%+v cannot be", sum)
			}
			var picture strings.Builder
			if err := all.WriteSVG(&picture); err != nil || !strings.Contains(picture.String(), "Allreduce of 1 KB at mpi/profile_arrivals_test.go") {
				t.Errorf("the picture is %v %s", err, picture.String())
			}
		})
	}
}

func TestArrivalsOfManyCallsAreThinnedOut(t *testing.T) {
	const calls = 10000
	all := arrivalsOf(t, 2, func(c *mpi.Comm) error {
		for range calls {
			if err := c.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})
	wantThinnedOut(t, all, calls)
}

// wantThinnedOut checks that few calls of one call site are recorded, and that they
// represent all of them.
func wantThinnedOut(t *testing.T, all *prof.Arrivals, calls int) {
	t.Helper()
	sites := all.Sites()
	if len(sites) != 1 || sites[0].Calls < calls*9/10 || sites[0].Calls > calls*11/10 || all.Lost != 0 {
		t.Errorf("got %+v, %d lost; want one place with about %d calls", sites, all.Lost, calls)
	}
	if len(all.Calls) >= calls/2 {
		t.Errorf("%d of %d calls were recorded", len(all.Calls), calls)
	}
}

func TestRecordingACallAllocatesNothing(t *testing.T) {
	profiled(t, 2, &mpi.Config{Profile: "arrivals:" + filepath.Join(t.TempDir(), "x.json")}, nil, func(c *mpi.Comm) error {
		if c.Rank() != 0 {
			return nil
		}
		// Memory is allocated for a thousand records at a time, so the mean is far below 1.
		if got := testing.AllocsPerRun(1500, func() { mpi.RecordCall(c) }); got != 0 {
			return fmt.Errorf("recording a call allocates %g times", got)
		}
		return nil
	})
}

func TestArrivalSettings(t *testing.T) {
	for value, ok := range map[string]bool{
		"arrivals": true, "arrivals:a.svg": true, "arrivals:a.json": true,
		"arrival": false, "arrivals:": false, "arrivals:a.png": false, "arrivals.svg": false,
	} {
		if _, err := mpi.ConfigFromEnv([]string{"MUSTER_PROFILE=" + value}); (err == nil) != ok {
			t.Errorf("MUSTER_PROFILE=%s gives %v", value, err)
		}
	}
}
