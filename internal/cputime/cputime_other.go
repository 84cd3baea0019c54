//go:build !unix

package cputime

import "time"

// Used is what this process has used so far, and whether the system tells. Here it does not.
func Used() (time.Duration, bool) { return 0, false }
