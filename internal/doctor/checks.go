package doctor

// The table of checks, and the type of a finding. Checks of one host are in judge_host.go
// and judge_network.go, those between hosts in judge_between.go. All are pure functions.

import (
	"fmt"
	"slices"
	"strings"
)

// Level is the severity of a finding.
type Level int

const (
	OK      Level = iota
	Warning       // jobs run, but slower or less safely than possible
	Problem       // jobs do not run, or not in every case
)

func (l Level) String() string { return [...]string{"ok", "warning", "problem"}[l] }

// MarshalText encodes levels as words in JSON.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is the result of a check for one or more hosts.
type Finding struct {
	Level  Level    `json:"level"`
	Hosts  []string `json:"hosts"`
	Detail string   `json:"detail"`
	Advice string   `json:"advice,omitempty"` // what to do; never empty unless the level is OK
	More   []string `json:"more,omitempty"`   // details for -v
}

// Check is a row of the table.
type Check struct {
	Name string
	Why  string // why it matters
	// Host judges a single host; many reports whether the survey has several hosts.
	Host func(f *Facts, many bool) Finding
	// Between judges the connections between hosts and returns at least one finding.
	// A check has either Host or Between.
	Between func(s *Survey) []Finding
}

// Checks returns the table in the order of the report, which is the order in which the
// faults would stop a job.
func Checks() []Check {
	return []Check{
		{Name: "reach", Why: "muster run starts an agent on each host through ssh, or the command given with --rsh", Between: judgeReach},
		{Name: "version", Why: "hosts of a job must use the same protocols", Host: judgeVersion},
		{Name: "same version", Why: "hosts of a job must use the same protocols", Between: judgeSameVersion},
		{Name: "host name", Why: "programs and launchers look up the host's own name", Host: judgeName},
		{Name: "interfaces", Why: "messages between hosts leave through one of them", Host: judgeInterfaces},
		{Name: "routes", Why: "with two routes to one network, answers may arrive at the wrong interface", Host: judgeRoutes},
		{Name: "ports", Why: "every pair of ranks that communicates over TCP needs some", Host: judgePorts},
		{Name: "connect", Why: "ranks connect to each other on ports that the kernel chooses", Between: judgeConnect},
		{Name: "packet size", Why: "a job hangs if one side drops the packets of the other", Between: judgePacketSize},
		{Name: "libfabric", Why: "it can carry messages between hosts", Host: judgeFabric},
		{Name: "same libfabric", Why: "both ends of a connection need the same provider", Between: judgeSameFabric},
		{Name: "shared memory", Why: "ranks of one host exchange messages in it", Host: judgeShared},
		{Name: "process_vm", Why: "with it a long message between two ranks is copied once, without it twice", Host: judgeProcessVM},
		{Name: "open files", Why: "a rank needs some for each peer on another host, the launcher for each rank", Host: judgeFiles},
		{Name: "processes", Why: "a rank is a process of several threads, and all count", Host: judgeProcesses},
		{Name: "locked memory", Why: "network adapters read and write memory that cannot be swapped out", Host: judgeLocked},
		{Name: "cpu", Why: "ranks that share cores wait for each other", Host: judgeCPU},
		{Name: "clock", Why: "timestamps and timeouts read it often", Host: judgeClock},
		{Name: "same time", Why: "traces and logs of several hosts are merged by time", Between: judgeSameTime},
		{Name: "huge pages", Why: "copies between ranks are up to 1.7 times faster with them", Host: judgeHugePages},
	}
}

// Result is a check with its findings.
type Result struct {
	Check    string    `json:"check"`
	Why      string    `json:"why"`
	Findings []Finding `json:"findings"`
}

// Level returns the level of the worst finding.
func (r *Result) Level() Level {
	worst := OK
	for _, f := range r.Findings {
		worst = max(worst, f.Level)
	}
	return worst
}

// Judge applies the table to a survey. Hosts with the same result share a finding.
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

// Count returns the number of checks at each level.
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

func (f Finding) addLines(more ...string) Finding {
	f.More = more
	return f
}

func (f Finding) addHosts(hosts ...string) Finding {
	f.Hosts = hosts
	return f
}

// size formats a number of bytes.
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
