package launch

// The tree of agents. The launcher divides the hosts among a limited number of agents;
// each agent does the same with its share. The functions are pure.

// hostRef identifies a host by its index in the job and its name.
type hostRef struct {
	Index int
	Name  string
}

// shares divides hosts into at most width parts of nearly equal length, in order. The
// agent of the first host of a part starts the agents of the others.
func shares(hosts []hostRef, width int) [][]hostRef {
	parts := min(width, len(hosts))
	out := make([][]hostRef, 0, parts)
	for i := range parts {
		out = append(out, hosts[i*len(hosts)/parts:(i+1)*len(hosts)/parts])
	}
	return out
}
