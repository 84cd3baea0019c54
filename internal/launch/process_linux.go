package launch

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc: USER_HZ, which is 100 on all platforms of Go.
const clockTick = 10 * time.Millisecond

// stateOf reads the state of a process, and its resident memory in bytes, from the kernel
// (proc_pid_stat(5)).
func stateOf(pid int) (s processState, resident int64) {
	if pid <= 0 {
		return s, 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, 0
	}
	// The command name, in parentheses, may contain any character.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const state, user, system, pages = 0, 11, 12, 21 // counted from the third field on
	if len(fields) <= pages || len(fields[state]) != 1 {
		return s, 0
	}
	s.pid, s.letter = pid, fields[state][0]
	for _, i := range []int{user, system} {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		s.cpu += time.Duration(n) * clockTick
	}
	n, _ := strconv.ParseInt(string(fields[pages]), 10, 64)
	return s, n * int64(os.Getpagesize())
}

// kernelWaits returns the different states of the threads of a process, each with the kernel
// function in which the thread sleeps (proc_pid_wchan(5)). Go programs wait in any of their
// threads.
func kernelWaits(pid int) string {
	if pid <= 0 {
		return ""
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return ""
	}
	var list []string
	for _, t := range tasks[:min(len(tasks), mostThreads)] {
		dir := fmt.Sprintf("/proc/%d/task/%s/", pid, t.Name())
		text, err := os.ReadFile(dir + "stat")
		if err != nil {
			continue // the thread has ended
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) == 0 {
			continue
		}
		state := string(fields[0])
		// It is 0 for a thread that runs, and for those of other users.
		if in, err := os.ReadFile(dir + "wchan"); err == nil && len(in) > 0 && string(in) != "0" {
			state += " " + string(in)
		}
		if !slices.Contains(list, state) {
			list = append(list, state)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// mostThreads bounds the threads of a process that kernelWaits looks at.
const mostThreads = 64
