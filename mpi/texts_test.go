package mpi_test

// Texts of errors and reports: what a user needs to find the mistake.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// An error of a message that is too long names the call of the program, the length of the
// message and that of the buffer.
func TestTruncationNamesLengths(t *testing.T) {
	for _, check := range []string{"off", "on"} {
		t.Run("check "+check, func(t *testing.T) {
			if mpitest.Launched() {
				t.Skip("the setting is that of the job")
			}
			t.Setenv("MUSTER_CHECK", check)
			mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
				for _, n := range []int{10, 1 << 17} {
					if c.Rank() == 1 {
						noError(t, mpi.Send(c, make([]int64, n), 0, 3), "Send")
						continue
					}
					_, err := mpi.Recv(c, make([]int64, 4), 1, 3)
					want := map[int]string{10: "the message of 80 bytes is longer than the receive buffer of 32 bytes",
						1 << 17: "the message of 1048576 bytes is longer than the receive buffer of 32 bytes"}[n]
					wantClassOf(t, err, mpi.ErrTruncate)
					if !strings.HasPrefix(err.Error(), "mpi: Recv with rank 1 on world, tag 3") || !strings.Contains(err.Error(), want) {
						t.Errorf("the error must name Recv and contain %q: %v", want, err)
					}
				}
			})
		})
	}
}

// The report of a stuck job has the line of a large Send that waits for its receive, in check
// mode, and no tags of the library.
func TestStuckReportNamesCalls(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("a world of its own")
	}
	worlds, err := mpi.Local(2, &mpi.Config{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() {
		c := worlds[1].Comm()
		err := mpi.Send(c, make([]int64, 1<<17), 0, 3)
		if err == nil {
			err = c.Barrier()
		}
		done <- err
	}()
	awaitReport(t, worlds[0], "rank 1 waits in Send (texts_test.go:", " to 0 tag 3 on comm world")
	go func() {
		c := worlds[0].Comm()
		_, err := mpi.Recv(c, make([]int64, 1<<17), 1, 3)
		done <- err
	}()
	report := awaitReport(t, worlds[0], "rank 1 waits in Barrier (texts_test.go:", " from 0 on comm world")
	if strings.Contains(report, "tag 2") {
		t.Errorf("the report has a tag of the library:\n%s", report)
	}
	go func() { done <- worlds[0].Comm().Barrier() }()
	for range 3 {
		noError(t, <-done, "a call")
	}
	for _, w := range worlds {
		go func() { done <- w.Finalize() }()
	}
	for range 2 {
		noError(t, <-done, "Finalize")
	}
}

// A receive whose tag or source is wrong: the report names the message that waits.
func TestStuckReportNamesUnreceived(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("a world of its own")
	}
	for _, other := range []struct{ source, tag int }{{1, 7}, {0, 8}} {
		worlds, err := mpi.Local(2, &mpi.Config{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		go func() {
			_, err := mpi.Recv(worlds[0].Comm(), make([]int64, 1), other.source, other.tag)
			done <- err
		}()
		wait := fmt.Sprintf("rank 0 waits in Recv from %d tag %d on comm world", other.source, other.tag)
		awaitReport(t, worlds[0], wait) // the message comes later
		noError(t, mpi.Send(worlds[1].Comm(), []int64{1}, 0, 8), "Send")
		awaitReport(t, worlds[0], wait+" (a message from 1 with tag 8 was not received)")
		noError(t, mpi.Send(worlds[other.source].Comm(), []int64{2}, 0, other.tag), "Send")
		noError(t, <-done, "Recv")
		_, err = mpi.Recv(worlds[0].Comm(), make([]int64, 1), 1, 8)
		noError(t, err, "Recv")
		for _, w := range worlds {
			go func() { done <- w.Finalize() }()
		}
		for range 2 {
			noError(t, <-done, "Finalize")
		}
	}
}

// awaitReport waits until the report of a stuck job has a line with the parts.
func awaitReport(t *testing.T, w *mpi.World, parts ...string) (report string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		lines := inspect.Waits(w)
		for _, line := range lines {
			found := true
			for _, p := range parts {
				found = found && strings.Contains(line, p)
			}
			if found {
				return strings.Join(lines, "\n")
			}
		}
		report = strings.Join(lines, "\n")
	}
	t.Fatalf("the report must have a line with %q; it is\n%s", parts, report)
	return ""
}
