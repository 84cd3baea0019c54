//go:build !muster_portable

package mpi_test

// Barrier on some ranks against Bcast on others, without check mode. The ranks in Bcast leave
// it and go on, to Finalize or to a Recv. If ranks share cores, Barrier and Finalize use one
// counter, in which their arrivals must not complete the Barrier.

import (
	"fmt"
	"regexp"
	"runtime"
	"testing"
)

func TestBarrierAgainstBcast(t *testing.T) {
	muster := launcher(t)
	const (
		both  = `(rank \d+ is in Bcast of 0 bytes with root 1, rank \d+ in Barrier|rank \d+ is in Barrier, rank \d+ in Bcast of 0 bytes with root 1) \(collective call 4 on the communicator\)`
		count = `rank \d+ has made (14 collective calls on the communicator, rank \d+ 4|4 collective calls on the communicator, rank \d+ 14)`
		next  = `[^\n]*; make the same collective calls on all ranks, in the same order`
	)
	type row struct {
		then  string
		ranks int
		want  string
	}
	rows := []row{{"finalize", 4, both}, {"receive", 4, both}}
	shared := max(4, runtime.NumCPU()&^1+2) // so many that they share cores
	if shared > 4 {
		rows = append(rows, row{"finalize", shared, both}, row{"receive", shared, both})
	}
	for _, c := range append(rows, row{"repeat", shared, count}) {
		t.Run(fmt.Sprintf("%s/ranks=%d", c.then, c.ranks), func(t *testing.T) {
			out, status, _ := job(t, muster, c.ranks, []string{programVar + "=" + againstProgram + c.then, "MUSTER_CHECK=off"})
			if want := `mpi: (Barrier|Finalize) on world: ` + c.want + next; status == 0 || !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("the job ended with status %d and must report %s:\n%s", status, want, out)
			}
			if regexp.MustCompile(`Barrier returned: <nil>`).MatchString(out) {
				t.Errorf("a Barrier that not all ranks have called succeeded:\n%s", out)
			}
		})
	}
}
