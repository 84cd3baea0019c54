package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// hang is the time that a job has to end after the last fault.
const hang = 45 * time.Second

// round is one job. It follows from its seed.
type round struct {
	seed                       uint64
	class, faults              string
	hosts, rails, ranks, kills int
	duration                   time.Duration
	env                        []string
	survive                    bool
}

// classOf describes what a class of rounds injects, and what must come of it.
type classOf struct {
	name, faults string
	share        int
	kills        int
	survive      bool
	leastHosts   int
}

var allClasses = []classOf{
	// A job must end well.
	{name: "mild", faults: "mild", share: 8},
	// The ranks that are left must go on.
	{name: "kill", faults: "rank", share: 4, kills: 2, survive: true},
	{name: "mixed", faults: "rank,cut,drop,duplicate,corrupt,delay,rate,stop", share: 4, kills: 2, survive: true, leastHosts: 2},
	{name: "host", faults: "host,agent", share: 2, kills: 1, survive: true, leastHosts: 2},
	// The job must end, and leave nothing.
	{name: "end", faults: "all", share: 2, kills: 1},
	{name: "launcher", faults: "launcher", share: 1, kills: 1},
}

func classes() (names []string) {
	for _, c := range allClasses {
		names = append(names, c.name)
	}
	return names
}

func newRound(seed uint64) round {
	random := rand.New(rand.NewPCG(seed, 0x736f616b)) // "soak"
	total := 0
	for _, c := range allClasses {
		total += c.share
	}
	pick := random.IntN(total)
	var class classOf
	for _, class = range allClasses {
		if pick -= class.share; pick < 0 {
			break
		}
	}
	r := round{seed: seed, class: class.name, faults: class.faults, kills: class.kills, survive: class.survive,
		rails: 1 + random.IntN(2), duration: 4 * time.Second}
	r.hosts = max(1+random.IntN(4), class.leastHosts)
	r.ranks = max(r.hosts*(1+random.IntN(3)), 2)
	if class.survive {
		r.ranks = max(r.ranks, 4)
	}
	for _, choice := range [][]string{
		{"", "", "", "MUSTER_CHANNEL=rd", "MUSTER_CHANNEL=rc", "MUSTER_CHANNEL=ud"},
		{"", "", "MUSTER_NO_MEMFD=1"},
		{"", "", "", "MUSTER_NO_SHARED_MEMORY=1"},
		{"", "", "MUSTER_EAGER=rings", "MUSTER_EAGER=few", "MUSTER_EAGER=posted"},
		{"", "", "MUSTER_RENDEZVOUS=get", "MUSTER_RENDEZVOUS=put"},
		{"", "", "", "MUSTER_ENCRYPT=on"},
		{"", "", "MUSTER_PROGRESS=async"},
		{"", "", "", "MUSTER_CHECK=on"},
		{"", "", "MUSTER_SPECULATE=never"},
		{"", "", "", "MUSTER_NO_PROCESS_VM=1"},
	} {
		if v := choice[random.IntN(len(choice))]; v != "" {
			r.env = append(r.env, v)
		}
	}
	if class.survive {
		r.env = append(r.env, "MUSTER_ON_FAILURE=return")
	}
	return r
}

func (r round) String() string {
	return fmt.Sprintf("%s, %d hosts, %d rails, %d ranks %v", r.class, r.hosts, r.rails, r.ranks, r.env)
}

// args returns the arguments of muster.
func (r round) args(program string) []string {
	seed := strconv.FormatUint(r.seed, 10)
	args := []string{"lab", "chaos", "--seed", seed, "--hosts", strconv.Itoa(r.hosts), "--rails", strconv.Itoa(r.rails),
		"--faults", r.faults, "--kills", strconv.Itoa(r.kills), "--duration", r.duration.String(), "--hang", hang.String(),
		"--", "-n", strconv.Itoa(r.ranks), "--stuck-after", "15s"}
	for _, v := range r.env {
		args = append(args, "--env", v)
	}
	args = append(args, program, "-seed", seed, "-time", r.duration.String())
	if r.survive {
		args = append(args, "-survive", "-v")
	}
	return args
}

// judge returns what is wrong with the result of a round, or "".
func (r round) judge(out string, status int) string {
	ok := strings.Count(out, "soak: ok")
	const statusHang = 124
	switch {
	case strings.Contains(out, "VIOLATION") && (r.survive || !r.fatal(out)):
		return "the program reports a violation"
	case strings.Contains(out, "wrong value"):
		return "a value is wrong"
	case strings.Contains(out, "panic:") || strings.Contains(out, "fatal error:"):
		return "a rank has panicked"
	case status == statusHang:
		return "the job hangs, or has left processes behind"
	case !r.fatal(out) && (status != 0 || ok != r.ranks):
		return fmt.Sprintf("nothing was killed, and %d of %d ranks end well", ok, r.ranks)
	case r.survive && (status != 0 || ok == 0) && r.started(out):
		return fmt.Sprintf("ranks were killed, and %d of the others end well", ok)
	}
	return ""
}

// broken reports whether the lab failed, not the job: a command of the system has not ended
// in time.
func broken(out string, status int) bool {
	return status < 0 || labFailure.MatchString(out)
}

var labFailure = regexp.MustCompile(`(?m)^muster: (chaos: .*: )?lab: `)

// fatal reports whether a process was killed.
func (r round) fatal(out string) bool {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "chaos:") && strings.Contains(line, "kill ") && !strings.Contains(line, "nothing to do it to") {
			return true
		}
	}
	return false
}

// started reports whether all ranks had started before the first was killed. Before that, a
// failure ends the job (docs/guide/failures.md).
func (r round) started(out string) bool {
	begin, kill := strings.Index(out, "soak: started"), strings.Index(out, "kill ")
	return begin >= 0 && (kill < 0 || begin < kill)
}
