//go:build !unix

package mpitest

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
