package doctor

// The table of checks, and what a finding is. Checks of one host are in
// judge_host.go and judge_network.go, those between hosts in judge_between.go;
// all are pure.

import (
	"fmt"
	"slices"
	"strings"
)

// Level is how bad a finding is.
type Level int

const (
	OK      Level = iota
	Warning       // jobs run, but slower or less safely than they could
	Problem       // jobs do not run, or not in every case
)

func (l Level) String() string { return [...]string{"ok", "warning", "problem"}[l] }

// MarshalText makes levels words in JSON.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is the result of a check for one or more hosts.
type Finding struct {
	Level  Level    `json:"level"`
	Hosts  []string `json:"hosts"`
	Detail string   `json:"detail"`
	Advice string   `json:"advice,omitempty"` // what to do; never empty unless the level is OK
	More   []string `json:"more,omitempty"`   // for those who want to know
}

// Check is a row of the table.
type Check struct {
	Name string
	Why  string // it matters
	// Host judges a host by itself; many reports whether it shall work with others.
	Host func(f *Facts, many bool) Finding
	// Between judges how several hosts get on, and returns at least one finding.
	// A check has either of the two.
	Between func(s *Survey) []Finding
}

// Checks is the table, in the order in which it is printed: what stops a job
// first comes first.
func Checks() []Check {
	return []Check{
		{Name: "reach", Why: "muster run starts an agent on each host through ssh, or the command given with --rsh", Between: judgeReach},
		{Name: "version", Why: "hosts of a job must agree on what they say to each other", Host: judgeVersion},
		{Name: "same version", Why: "hosts of a job must agree on what they say to each other", Between: judgeSameVersion},
		{Name: "host name", Why: "programs and launchers look up the host's own name", Host: judgeName},
		{Name: "interfaces", Why: "messages between hosts leave through one of them", Host: judgeInterfaces},
		{Name: "routes", Why: "two ways to one network send answers where nobody waits for them", Host: judgeRoutes},
		{Name: "ports", Why: "every pair of ranks that talks over TCP needs some", Host: judgePorts},
		{Name: "connect", Why: "ranks connect to each other on ports that the kernel chooses", Between: judgeConnect},
		{Name: "packet size", Why: "packets that one side sends and the other drops look like a hang", Between: judgePacketSize},
		{Name: "libfabric", Why: "it carries messages between hosts", Host: judgeFabric},
		{Name: "same libfabric", Why: "both ends of a connection need the same provider", Between: judgeSameFabric},
		{Name: "shared memory", Why: "ranks of one host exchange messages in it", Host: judgeShared},
		{Name: "process_vm", Why: "with it a long message between two ranks is copied once, without it twice", Host: judgeProcessVM},
		{Name: "open files", Why: "a rank needs some for each peer on another host, the launcher for each rank", Host: judgeFiles},
		{Name: "processes", Why: "a rank is a process of several threads, and all count", Host: judgeProcesses},
		{Name: "locked memory", Why: "network adapters read and write memory that cannot be swapped out", Host: judgeLocked},
		{Name: "cpu", Why: "ranks that share cores wait for each other", Host: judgeCPU},
		{Name: "clock", Why: "timestamps and timeouts read it often", Host: judgeClock},
		{Name: "same time", Why: "traces and logs of several hosts are put together by time", Between: judgeSameTime},
		{Name: "huge pages", Why: "copies between ranks are up to 1.7 times faster with them", Host: judgeHugePages},
	}
}

// Result is a check with what it found.
type Result struct {
	Check    string    `json:"check"`
	Why      string    `json:"why"`
	Findings []Finding `json:"findings"`
}

// Level is that of the worst finding.
func (r *Result) Level() Level {
	worst := OK
	for _, f := range r.Findings {
		worst = max(worst, f.Level)
	}
	return worst
}

// Judge runs the table over a survey. Hosts about which a check finds the same
// share a finding.
func Judge(s *Survey) []Result {
	var results []Result
	for _, c := range Checks() {
		r := Result{Check: c.Name, Why: c.Why}
		switch {
		case c.Host != nil:
			r.Findings = judgeEach(s, c.Host)
		case len(s.Hosts) > 1:
			r.Findings = c.Between(s)
		}
		if len(r.Findings) > 0 {
			results = append(results, r)
		}
	}
	return results
}

func judgeEach(s *Survey, judge func(*Facts, bool) Finding) (all []Finding) {
	for _, v := range s.Hosts {
		if v.Facts == nil {
			continue // judgeReach reports why
		}
		f := judge(v.Facts, len(s.Hosts) > 1)
		same := slices.IndexFunc(all, func(o Finding) bool {
			return o.Level == f.Level && o.Detail == f.Detail && o.Advice == f.Advice && slices.Equal(o.More, f.More)
		})
		if same >= 0 {
			all[same].Hosts = append(all[same].Hosts, v.Name)
			continue
		}
		f.Hosts = []string{v.Name}
		all = append(all, f)
	}
	return all
}

// Count is how many checks ended at each level.
func Count(results []Result) (ok, warnings, problems int) {
	for i := range results {
		switch results[i].Level() {
		case OK:
			ok++
		case Warning:
			warnings++
		case Problem:
			problems++
		}
	}
	return ok, warnings, problems
}

func fine(format string, args ...any) Finding { return Finding{Detail: fmt.Sprintf(format, args...)} }

func warn(advice, format string, args ...any) Finding {
	return Finding{Level: Warning, Detail: fmt.Sprintf(format, args...), Advice: advice}
}

func problem(advice, format string, args ...any) Finding {
	return Finding{Level: Problem, Detail: fmt.Sprintf(format, args...), Advice: advice}
}

func (f Finding) with(more ...string) Finding {
	f.More = more
	return f
}

func (f Finding) on(hosts ...string) Finding {
	f.Hosts = hosts
	return f
}

// size writes bytes for people.
func size(n int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if v < 10 && u > 0 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + units[u]
	}
	return fmt.Sprintf("%.0f %s", v, units[u])
}
