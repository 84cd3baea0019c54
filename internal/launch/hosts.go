package launch

// Which hosts, and which ranks on each. Host lists come from a flag or a file;
// ranks are dealt out in blocks, host by host. All of it is pure.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Host is a machine that ranks can run on.
type Host struct {
	// Name is what the remote shell takes, as it is: a full name stays one.
	Name string
	// Slots is how many ranks it takes. 0: not said.
	Slots int
}

// ParseHosts reads the list of a flag: "a:4,b:4", "a,b", "[fe80::1]:2".
func ParseHosts(list string) ([]Host, error) {
	var hosts []Host
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		h, err := parseHost(word)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	if len(hosts) == 0 {
		return nil, errors.New("no host is named; write them as a:4,b:4")
	}
	return mergeHosts(hosts), nil
}

// ParseHostfile reads a file with a host in each line: "host", "host:4" as for
// MPICH, or "host slots=4" as for Open MPI. '#' begins a comment.
func ParseHostfile(text string) ([]Host, error) {
	var hosts []Host
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		h, err := parseHost(words[0])
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			if key == "slots" && err == nil {
				h.Slots, err = parseSlots(value)
			} // others, such as max_slots, say nothing that is needed here
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		hosts = append(hosts, h)
	}
	if len(hosts) == 0 {
		return nil, errors.New("it names no host; write one in each line, as host:4 or host slots=4")
	}
	return mergeHosts(hosts), nil
}

func parseHost(word string) (h Host, err error) {
	h.Name = word
	name, slots := word, ""
	switch at := strings.LastIndexByte(word, ':'); {
	case strings.HasPrefix(word, "["): // an IPv6 address, perhaps with a number after it
		end := strings.IndexByte(word, ']')
		if end < 0 {
			return h, fmt.Errorf("%q has no closing bracket", word)
		}
		name, slots = word[1:end], word[end+1:]
		if slots != "" && slots[0] != ':' {
			return h, fmt.Errorf("%q: after the bracket stands :N", word)
		}
		slots = strings.TrimPrefix(slots, ":")
	case strings.Count(word, ":") == 1:
		name, slots = word[:at], word[at+1:]
	}
	h.Name = name
	if slots != "" || strings.HasSuffix(word, ":") {
		if h.Slots, err = parseSlots(slots); err != nil {
			return h, fmt.Errorf("%q: %w", word, err)
		}
	}
	return h, checkHostName(name)
}

// checkHostName: names become words of a command line, and one that looks like
// an option would be taken for one.
func checkHostName(name string) error {
	if name == "" {
		return errors.New("a host without a name; write a:4,b:4")
	}
	if name[0] == '-' {
		return fmt.Errorf("%q is no name of a host: it begins with '-'", name)
	}
	for _, c := range name {
		if c <= ' ' || c == 0x7f || strings.ContainsRune("'\"`$;&|<>(){}\\*?!", c) {
			return fmt.Errorf("%q is no name of a host: it holds %q", name, c)
		}
	}
	return nil
}

func parseSlots(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxRanks {
		return 0, fmt.Errorf("%q is no number of ranks: use 1 to %d", s, maxRanks)
	}
	return n, nil
}

// mergeHosts adds up hosts that are named twice, at their first place: a host
// has one agent, and its ranks share memory.
func mergeHosts(hosts []Host) []Host {
	var out []Host
	for _, h := range hosts {
		i := slices.IndexFunc(out, func(o Host) bool { return o.Name == h.Name })
		if i < 0 {
			out = append(out, h)
			continue
		}
		out[i].Slots = max(1, out[i].Slots) + max(1, h.Slots)
	}
	return out
}

// block is the ranks of a host: count of them from first on.
type block struct{ First, Count int }

// placeRanks deals out n ranks, in blocks. n of 0 means all slots. Hosts that get
// none are left out. Where no host says how many it takes, n is divided evenly.
func placeRanks(hosts []Host, n int) ([]Host, []block, error) {
	total, said := 0, false
	for _, h := range hosts {
		total += max(1, h.Slots)
		said = said || h.Slots > 0
	}
	if n == 0 {
		n = total
	}
	if n < 1 || n > maxRanks {
		return nil, nil, fmt.Errorf("launch: %d ranks: use 1 to %d", n, maxRanks)
	}
	if said && n > total {
		return nil, nil, fmt.Errorf("launch: %d ranks do not fit the %d slots of %s: raise the numbers after the colons, or leave all of them out to divide the ranks evenly",
			n, total, hostList(hosts))
	}
	var used []Host
	var blocks []block
	first := 0
	for i, h := range hosts {
		count := min(max(1, h.Slots), n-first)
		if !said {
			count = n/len(hosts) + min(1, max(0, n%len(hosts)-i))
		}
		if count > 0 {
			used = append(used, h)
			blocks = append(blocks, block{first, count})
			first += count
		}
	}
	return used, blocks, nil
}

// hostList names hosts for a message, not more than fit a line.
func hostList(hosts []Host) string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		if names[i] = h.Name; h.Slots > 0 {
			names[i] += ":" + strconv.Itoa(h.Slots)
		}
	}
	return shortList(names)
}

func shortList(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most-1], ", ") + fmt.Sprintf(" and %d more", len(names)-most+1)
	}
	return strings.Join(names, ", ")
}

// mappingOf writes blocks as PMI_process_mapping; hosts with equally many ranks
// that follow each other become one entry.
func mappingOf(blocks []block) string {
	var b strings.Builder
	b.WriteString("(vector")
	for i := 0; i < len(blocks); {
		j := i + 1
		for j < len(blocks) && blocks[j].Count == blocks[i].Count {
			j++
		}
		fmt.Fprintf(&b, ",(%d,%d,%d)", i, j-i, blocks[i].Count)
		i = j
	}
	return b.String() + ")"
}

// hostOf is the number of the host that a rank is on.
func hostOf(blocks []block, rank int) int {
	i, found := slices.BinarySearchFunc(blocks, rank, func(b block, r int) int { return b.First - r })
	if !found {
		i--
	}
	return i
}
