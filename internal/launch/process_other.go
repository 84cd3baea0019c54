//go:build !linux

package launch

// stateOf: there is no /proc.
func stateOf(int) (processState, int64) { return processState{}, 0 }

func kernelWaits(int) string { return "" }
