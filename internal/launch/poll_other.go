//go:build !linux

package launch

import "os"

func newPoller() poller { return new(portablePoller) }

// startProcess starts a process.
func startProcess(prog string, args []string, attr *os.ProcAttr) (process, error) {
	p, err := os.StartProcess(prog, args, attr)
	return &localProcess{p}, err
}
