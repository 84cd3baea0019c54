package launch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of times in /proc: USER_HZ, which is 100 on all platforms of Go.
const clockTick = 10 * time.Millisecond

// stateOf reads the state of a process from the kernel (proc_pid_stat(5)).
func stateOf(pid int) (s processState) {
	if pid <= 0 {
		return s
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s
	}
	// The command name, in parentheses, may contain any character.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const state, user, system = 0, 11, 12 // counted from the third field on
	if len(fields) <= system || len(fields[state]) != 1 {
		return s
	}
	s.pid, s.letter = pid, fields[state][0]
	for _, i := range []int{user, system} {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		s.cpu += time.Duration(n) * clockTick
	}
	return s
}
