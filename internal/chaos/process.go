package chaos

// The processes of a job, recognized by their command line and environment.

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// process is a process of a job on a host.
type process struct{ pid, parent, rank int }

// isAgent and isRank recognize the processes of a job from their arguments and environment.
func isAgent(args, _ [][]byte) (int, bool) {
	return -1, len(args) > 1 && string(args[1]) == "agent"
}

func isRank(args, env [][]byte) (int, bool) {
	if _, agent := isAgent(args, nil); agent {
		return 0, false
	}
	for _, v := range env {
		if text, ok := bytes.CutPrefix(v, []byte("PMI_RANK=")); ok {
			n, err := strconv.Atoi(string(text))
			return n, err == nil
		}
	}
	return 0, false
}

// find returns the processes that match, without those whose parent does: a rank may have
// started other programs, which have its environment.
func find(pids []int, is func(args, env [][]byte) (int, bool)) []process {
	var found []process
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid)
		args, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue // it has ended
		}
		env, err := os.ReadFile(dir + "/environ")
		if err != nil {
			continue
		}
		rank, ok := is(bytes.Split(args, []byte{0}), bytes.Split(env, []byte{0}))
		if ok {
			found = append(found, process{pid, parent(dir), rank})
		}
	}
	all := slices.Clone(found)
	return slices.DeleteFunc(found, func(p process) bool {
		return slices.ContainsFunc(all, func(q process) bool { return q.pid == p.parent })
	})
}

// parent returns the parent of a process, from the fourth field of stat. The second, its
// name in parentheses, may contain spaces.
func parent(dir string) int {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(string(fields[1]))
	return n
}
