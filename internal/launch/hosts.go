package launch

// Host lists, which come from a flag or a file. All functions are pure. nodelist.go reads
// those of batch systems, and layout.go assigns the ranks.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Host is a machine that ranks can run on.
type Host struct {
	// Name is passed unchanged to the remote shell.
	Name string
	// Slots is the number of ranks the host takes. 0: not specified.
	Slots int
}

// ParseHosts parses the list of a flag: "a:4,b:4", "a,b", "[fe80::1]:2".
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
		return nil, errors.New("the host list is empty; use a list such as a:4,b:4")
	}
	return mergeHosts(hosts), nil
}

// ParseHostfile parses a file with one host per line: "host", "host:4" as for MPICH, or
// "host slots=4" as for Open MPI. '#' starts a comment.
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
			} // other keys, such as max_slots, are ignored
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		hosts = append(hosts, h)
	}
	if len(hosts) == 0 {
		return nil, errors.New("the file has no hosts; write one per line, as host:4 or host slots=4")
	}
	return mergeHosts(hosts), nil
}

func parseHost(word string) (h Host, err error) {
	h.Name = word
	name, slots := word, ""
	switch at := strings.LastIndexByte(word, ':'); {
	case strings.HasPrefix(word, "["): // an IPv6 address, possibly with a slot count
		end := strings.IndexByte(word, ']')
		if end < 0 {
			return h, fmt.Errorf("%q has no closing bracket", word)
		}
		name, slots = word[1:end], word[end+1:]
		if slots != "" && slots[0] != ':' {
			return h, fmt.Errorf("%q: expected :N after the bracket", word)
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

// checkHostName rejects names that a remote shell could interpret as an option or as
// syntax: they become words of a command line.
func checkHostName(name string) error {
	if name == "" {
		return errors.New("a host has no name; use a list such as a:4,b:4")
	}
	if name[0] == '-' {
		return fmt.Errorf("invalid host name %q: it begins with '-'", name)
	}
	for _, c := range name {
		if c <= ' ' || c == 0x7f || strings.ContainsRune("'\"`$;&|<>(){}\\*?!", c) {
			return fmt.Errorf("invalid host name %q: it contains %q", name, c)
		}
	}
	return nil
}

func parseSlots(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxRanks {
		return 0, fmt.Errorf("invalid slot count %q: use 1 to %d", s, maxRanks)
	}
	return n, nil
}

// mergeHosts adds up the slots of hosts that are listed twice, at their first position: a
// host has one agent, and its ranks share memory.
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

// hostList returns the names of hosts for a message, shortened to fit a line.
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
