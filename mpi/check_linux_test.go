//go:build !muster_portable

package mpi_test

// Check mode of jobs of processes, as a user runs them.

import (
	"regexp"
	"testing"
)

// The setting alone makes a job report these mistakes, with the lines of both sides.
func TestMistakesOfProcesses(t *testing.T) {
	muster := launcher(t)
	const site = ` at check_report_test\.go:\d+`
	for what, want := range map[string]string{
		"types":       `the element types differ: rank 1 sent with Send of float32` + site + `, rank 0 received with Recv of float64` + site,
		"collectives": `rank \d is in (Barrier` + site + `, rank \d in Bcast of 8 bytes of int with root 1` + site + `|Bcast of 8 bytes of int with root 1` + site + `, rank \d in Barrier` + site + `)`,
		"unreceived":  `a message was not received: rank 1 sent it with Send of int` + site + ` to rank 0 on world, tag 7, 8 bytes`,
		"dropped":     `a request was not completed: Irecv from rank 1` + site,
	} {
		t.Run(what, func(t *testing.T) {
			out, status, _ := job(t, muster, 4, []string{programVar + "=" + mistakeProgram + what, "MUSTER_CHECK=1"})
			if status == 0 || !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("the job ended with status %d and must report %s:\n%s", status, want, out)
			}
		})
	}
}
