package core

// Info keys of calls that start processes (MPI-4.1 section 11.8.4), and those of MPICH and Open MPI
// for hosts.

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/mpi"
)

// spawnCommand returns the command for a program, and at most that many processes of it.
func (f *info) spawnCommand(prog string, most int) (s mpi.SpawnCommand, err error) {
	s = mpi.SpawnCommand{Prog: prog, Ranks: most}
	if path, ok := f.get("path"); ok {
		s.Prog = findIn(path, prog)
	}
	if dir, ok := f.get("wdir"); ok {
		if s.Dir, err = filepath.Abs(dir); err != nil {
			return s, errorf(errInfoValue, "wdir=%s: %v", dir, err)
		}
	}
	if s.Hosts, err = f.hosts(); err != nil {
		return s, err
	}
	if soft, ok := f.get("soft"); ok {
		s.Ranks, err = largestOf(soft, most)
	}
	return s, err
}

// findIn returns the path of a program in one of the folders of a list, or its name if none has it: the
// launcher looks for that.
func findIn(path, prog string) string {
	if filepath.IsAbs(prog) {
		return prog
	}
	for _, folder := range filepath.SplitList(path) {
		file, err := filepath.Abs(filepath.Join(folder, prog))
		if err != nil {
			continue
		}
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return file
		}
	}
	return prog
}

// hosts returns the names of hosts. A line of a file has a name, and what this ignores: the processes
// that the host can have, for which it is the launcher that decides.
func (f *info) hosts() (list []string, err error) {
	var words []string
	for _, key := range []string{"host", "hosts"} {
		value, _ := f.get(key)
		words = append(words, strings.Split(value, ",")...)
	}
	if file, ok := f.get("hostfile"); ok {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, errorf(errInfoValue, "hostfile: %v", err)
		}
		for line := range strings.Lines(string(content)) {
			line, _, _ = strings.Cut(line, "#")
			if fields := strings.Fields(line); len(fields) > 0 {
				words = append(words, fields[0])
			}
		}
	}
	for _, w := range words {
		name, _, _ := strings.Cut(strings.TrimSpace(w), ":")
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// largestOf returns the largest number from 1 to most in the set that the key soft describes:
// Fortran's triplets first:last:step, separated by commas.
func largestOf(soft string, most int) (int, error) {
	largest := 0
	for triplet := range strings.SplitSeq(soft, ",") {
		var numbers []int
		for word := range strings.SplitSeq(triplet, ":") {
			n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
			if err != nil {
				return 0, errorf(errInfoValue, "soft=%s: %q is not a number", soft, word)
			}
			numbers = append(numbers, int(n))
		}
		first, last, step := numbers[0], numbers[0], 1
		switch len(numbers) {
		case 1:
		case 2:
			last = numbers[1]
		case 3:
			last, step = numbers[1], numbers[2]
		default:
			return 0, errorf(errInfoValue, "soft=%s: %q has more than three numbers", soft, triplet)
		}
		if step == 0 {
			return 0, errorf(errInfoValue, "soft=%s: the step of %q is 0", soft, triplet)
		}
		largest = max(largest, largestIn(first, last, step, most))
	}
	if largest == 0 {
		return 0, errorf(errSpawn, "soft=%s has no number from 1 to %d", soft, most)
	}
	return largest, nil
}

// largestIn returns the largest number from 1 to most of a triplet, or 0.
func largestIn(first, last, step, most int) int {
	if step < 0 { // the same numbers from below
		if first < last {
			return 0
		}
		first, last, step = first-(first-last)/-step*-step, first, -step
	}
	if last = min(last, most); first > last {
		return 0
	}
	return max(0, first+(last-first)/step*step)
}
