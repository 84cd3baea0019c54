//go:build !linux

package launch

import "runtime"

// thisMachine: without affinity the number of CPUs is all that counts.
func thisMachine() machine { return machine{threads: runtime.NumCPU()} }
