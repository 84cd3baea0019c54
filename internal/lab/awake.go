package lab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
)

// awakeCommand are the arguments of muster for a process that calls SpinIdle.
var awakeCommand = []string{"lab", "awake"}

// KeepAwake prevents that cores of a virtual machine halt while they are idle, if cables have a
// rate, until stop is called. A cable of a lab sends by the timer of a core, and the timers of a
// halted virtual core are late: 2 % of them by 0.2 to 6 ms, on two cores of which one was idle.
// Meanwhile the cable is silent, and a transfer of 1 MB at 1 Gbit/s took 10.5 instead of 8.8 ms
// whenever a rank computed beside it. A thread of the scheduling class for idle time on each core
// prevents that. It yields all the time, so that a rank that yields has its core back after a
// microsecond or two: a thread that only computed kept the core until the next tick, up to 4 ms,
// and half a round trip of 64 KB took 1.0 instead of 0.42 ms.
//
// It is for jobs that have a core for each rank: otherwise no core is idle. muster is the path of
// the muster command.
func (l *Lab) KeepAwake(muster string) (stop func(), err error) {
	rates, err := ratesOf(l.hosts[0])
	if err != nil || rates[device(0)] == 0 || !onVirtualMachine() {
		return func() {}, err
	}
	cmd := exec.Command(muster, awakeCommand...)
	lifeline, err := cmd.StdinPipe() // its end ends the process, also if this one is killed
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("lab: keep the cores awake: %w", err)
	}
	return func() {
		_ = lifeline.Close()
		_ = cmd.Wait() // it has done its work
	}, nil
}

// onVirtualMachine reports whether a hypervisor runs this system.
func onVirtualMachine() bool {
	info, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && bytes.Contains(info, []byte(" hypervisor"))
}
