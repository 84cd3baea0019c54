package launch

// The tree of agents. Whoever starts agents, the launcher first, deals the hosts
// out to at most so many of them; each agent starts those of its share in the same
// way. Pure.

// hostRef is a host by its number in the job and its name.
type hostRef struct {
	Index int
	Name  string
}

// shares divides hosts into at most width parts of nearly the same length, in
// order. The agent of the first host of a part starts the others of it.
func shares(hosts []hostRef, width int) [][]hostRef {
	parts := min(width, len(hosts))
	out := make([][]hostRef, 0, parts)
	for i := range parts {
		out = append(out, hosts[i*len(hosts)/parts:(i+1)*len(hosts)/parts])
	}
	return out
}
