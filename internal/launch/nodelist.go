package launch

// The hosts of an allocation of a batch system, from the environment of the job. All
// functions are pure.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Allocation returns the hosts and slots that a batch system has given to this job, and
// the variable that names them. It returns no hosts outside of a batch system.
//
// Slurm describes the hosts by SLURM_JOB_NODELIST, and their slots by
// SLURM_TASKS_PER_NODE or, if the user has not asked for tasks, SLURM_JOB_CPUS_PER_NODE.
// In a job step the former may describe the hosts of the step only; then the latter
// counts too.
// PBS and its descendants name a file by PBS_NODEFILE, with one line for each slot.
func Allocation(getenv func(string) string, readFile func(string) ([]byte, error)) (hosts []Host, from string, err error) {
	if list := getenv("SLURM_JOB_NODELIST"); list != "" {
		hosts, err = slurmHosts(list, getenv("SLURM_TASKS_PER_NODE"), getenv("SLURM_JOB_CPUS_PER_NODE"))
		return hosts, "SLURM_JOB_NODELIST", err
	}
	if path := getenv("PBS_NODEFILE"); path != "" {
		text, err := readFile(path)
		if err != nil {
			return nil, "PBS_NODEFILE", err
		}
		hosts, err := ParseHostfile(string(text))
		if err != nil {
			return nil, "PBS_NODEFILE", fmt.Errorf("%s: %w", path, err)
		}
		for i := range hosts {
			hosts[i].Slots = max(1, hosts[i].Slots)
		}
		return hosts, "PBS_NODEFILE", nil
	}
	return nil, "", nil
}

func slurmHosts(list, tasks, cpus string) ([]Host, error) {
	names, err := ParseNodeList(list)
	if err != nil {
		return nil, err
	}
	slots, err := parseCounts(tasks, len(names))
	if (tasks == "" || err != nil) && cpus != "" {
		slots, err = parseCounts(cpus, len(names))
	}
	if err != nil {
		return nil, err
	}
	hosts := make([]Host, len(names))
	for i, name := range names {
		hosts[i] = Host{Name: name}
		if slots != nil {
			hosts[i].Slots = slots[i]
		}
	}
	return mergeHosts(hosts), nil
}

// ParseNodeList expands a list of hosts of Slurm, such as "a,b[1-3,07],r[1-2]n[1-4]".
// Numbers keep their leading zeros.
func ParseNodeList(list string) (names []string, err error) {
	for word := range splitOutside(list) {
		if word == "" {
			continue
		}
		expanded, err := expandNode(word, maxHosts-len(names))
		if err != nil {
			return nil, fmt.Errorf("node list %.80q: %w", list, err)
		}
		for _, name := range expanded {
			if err := checkHostName(name); err != nil {
				return nil, fmt.Errorf("node list %.80q: %w", list, err)
			}
		}
		names = append(names, expanded...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("node list %.80q: it has no hosts", list)
	}
	return names, nil
}

// splitOutside yields the parts of a list that is separated by commas outside of
// brackets.
func splitOutside(list string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		depth, start := 0, 0
		for i := range len(list) {
			switch list[i] {
			case '[':
				depth++
			case ']':
				depth--
			case ',':
				if depth == 0 {
					if !yield(list[start:i]) {
						return
					}
					start = i + 1
				}
			}
		}
		yield(list[start:])
	}
}

// expandNode expands all brackets of a name, into at most limit names. The last bracket
// varies fastest.
func expandNode(word string, limit int) ([]string, error) {
	names := []string{""}
	for {
		fixed, rest, found := strings.Cut(word, "[")
		if strings.Contains(fixed, "]") {
			return nil, fmt.Errorf("%q has a closing bracket without an opening one", word)
		}
		if !found {
			return combineNames(names, []string{fixed}, limit)
		}
		inner, after, closed := strings.Cut(rest, "]")
		if !closed {
			return nil, fmt.Errorf("%q has no closing bracket", word)
		}
		numbers, err := expandNumbers(inner, limit)
		if err != nil {
			return nil, err
		}
		for i := range numbers {
			numbers[i] = fixed + numbers[i]
		}
		if names, err = combineNames(names, numbers, limit); err != nil {
			return nil, err
		}
		word = after
	}
}

// combineNames returns each name followed by each ending.
func combineNames(names, endings []string, limit int) ([]string, error) {
	if len(names)*len(endings) > limit {
		return nil, tooManyHosts()
	}
	out := make([]string, 0, len(names)*len(endings))
	for _, n := range names {
		for _, e := range endings {
			out = append(out, n+e)
		}
	}
	return out, nil
}

// expandNumbers expands the text of a bracket, such as "1-3,07".
func expandNumbers(text string, limit int) (numbers []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, err1 := strconv.ParseUint(from, 10, 32)
		hi, err2 := strconv.ParseUint(to, 10, 32)
		if err1 != nil || err2 != nil || hi < lo {
			return nil, fmt.Errorf("invalid numbers [%s]: use numbers and ranges such as 1-3,7", text)
		}
		if hi-lo >= uint64(max(0, limit-len(numbers))) {
			return nil, tooManyHosts()
		}
		for n := lo; n <= hi; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", len(from), n))
		}
	}
	return numbers, nil
}

func tooManyHosts() error { return fmt.Errorf("more than %d hosts", maxHosts) }

// parseCounts expands the counts of Slurm, such as "4(x2),3", to one for each of n hosts.
// Empty text has no counts.
func parseCounts(text string, n int) (counts []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		number, times, repeated := strings.Cut(part, "(x")
		count, err := parseSlots(number)
		if err != nil {
			return nil, err
		}
		repeat := 1
		if repeated {
			times, closed := strings.CutSuffix(times, ")")
			if repeat, err = strconv.Atoi(times); err != nil || !closed || repeat < 1 {
				return nil, fmt.Errorf("invalid counts %.80q: use counts such as 4(x2),3", text)
			}
		}
		if repeat > n-len(counts) {
			return nil, fmt.Errorf("the counts %.80q are for more than %d hosts", text, n)
		}
		for range repeat {
			counts = append(counts, count)
		}
	}
	if len(counts) != n {
		return nil, errors.New("the counts " + text + " are for " + strconv.Itoa(len(counts)) + " of " + strconv.Itoa(n) + " hosts")
	}
	return counts, nil
}
