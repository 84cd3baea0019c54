package doctor

// Checks between hosts.

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const slowReach = 3 * time.Second

// judgeReach returns a finding for each host that could not be reached, was slow, or has
// two names.
func judgeReach(s *Survey) (found []Finding) {
	var reached []string
	var slowest time.Duration
	seen := map[string]string{}
	for _, v := range s.Hosts {
		switch {
		case v.Error != "":
			found = append(found, problem(reachAdvice(v), "%s", v.Error).addHosts(v.Name))
			continue
		case v.Took > slowReach:
			found = append(found, warn("check what the login shell does there, and whether sshd waits for a resolver (UseDNS)", "its answer took %v", v.Took.Round(100*time.Millisecond)).addHosts(v.Name))
		}
		if v.Facts != nil && v.Facts.Identity != "" {
			if other, twice := seen[v.Facts.Identity]; twice {
				found = append(found, warn("list it once, with the slots of both", "%s and %s are one host", other, v.Name).addHosts(v.Name))
			}
			seen[v.Facts.Identity] = v.Name
		}
		reached = append(reached, v.Name)
		slowest = max(slowest, v.Took)
	}
	if len(found) == 0 {
		found = append(found, fine("each answered within %v", slowest.Round(time.Millisecond)).addHosts(reached...))
	}
	return found
}

// reachAdvice returns advice for the error messages of ssh, shells and the kernel.
func reachAdvice(v Visit) string {
	e := strings.ToLower(v.Error)
	contains := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(e, w) })
	}
	switch {
	case contains("permission denied (", "too many authentication failures"):
		return "allow ssh without a password: ssh-copy-id " + v.Name
	case contains("host key verification failed", "identification has changed"):
		return "connect once by hand and compare the key: ssh " + v.Name
	case contains("could not resolve", "name or service not known", "temporary failure in name resolution"):
		return "correct the name, or add it to ~/.ssh/config, /etc/hosts or the DNS"
	case contains("cannot open network namespace"):
		return "there is no such namespace: see ip netns list"
	case contains("executable file not found", "no such program"):
		return "install the command given with --rsh, or correct it"
	case contains("command not found", "no such file", "not found", "exec of"):
		return "install muster there at the same path as here, or set its path with --agent-path"
	case contains("unknown flag", "unknown command", "another version"):
		return "install the same version of muster there as here"
	case contains("connection refused"):
		return "start sshd there, or correct the port in ~/.ssh/config"
	case contains("no route", "network is unreachable", "timed out", "no answer"):
		return "is it switched on and on this network? Try by hand: ssh " + v.Name + " true"
	}
	return "try by hand: ssh " + v.Name + " muster doctor"
}

func judgeSameVersion(s *Survey) []Finding {
	builds := groupHosts(s, func(f *Facts) string { return f.Muster + " " + f.Build })
	archs, versions := groupHosts(s, func(f *Facts) string { return f.OS + "/" + f.Arch }), groupHosts(s, func(f *Facts) string { return f.Muster })
	var found []Finding
	if len(versions) > 1 {
		found = append(found, problem("install one version of muster everywhere, and build programs with it", "muster differs: %s", describe(versions)).addHosts(odd(versions)...))
	}
	if len(archs) > 1 {
		found = append(found, problem("one program file cannot run on all of them: use hosts of one architecture", "machines differ: %s", describe(archs)).addHosts(odd(archs)...))
	}
	if found == nil && len(builds) > 1 {
		found = append(found, warn("copy one file of muster to all hosts, or install a released version", "one version, but different builds: %s", describe(builds)).addHosts(odd(builds)...))
	}
	if found == nil {
		found = []Finding{fine("muster and machine are the same everywhere").addHosts(answeringHosts(s)...)}
	}
	return found
}

func judgeSameFabric(s *Survey) []Finding {
	versions := groupHosts(s, func(f *Facts) string { return f.Fabric.Version })
	providers := groupHosts(s, func(f *Facts) string { provider, _, _ := strings.Cut(f.Fabric.Taken, " on "); return provider })
	built := groupHosts(s, func(f *Facts) string {
		return map[bool]string{true: "with libfabric", false: "without libfabric"}[f.Fabric.Built]
	})
	switch {
	case len(built) > 1:
		return []Finding{problem("install the same build of muster everywhere", "muster was built %s", describe(built)).addHosts(odd(built)...)}
	case len(providers) > 1:
		return []Finding{problem("use a provider that all have: MUSTER_NETWORK=ofi:PROVIDER; fi_info -l lists them", "providers differ: %s", describe(providers)).addHosts(odd(providers)...)}
	case len(versions) > 1:
		return []Finding{warn("install one version of libfabric everywhere: the wire protocols of its providers change", "libfabric differs: %s", describe(versions)).addHosts(odd(versions)...)}
	}
	return []Finding{fine("the same everywhere").addHosts(answeringHosts(s)...)}
}

// judgeConnect requires that at least one address works between any two hosts, and warns
// unless all do.
func judgeConnect(s *Survey) []Finding {
	var broken, half, blocked, more []string
	var reasons []string
	var good string // an interface that works
	pairs, working := 0, 0
	forEachPair(s, func(from, to string, trials []Trial) {
		pairs++
		var fails []string
		for _, t := range trials {
			line := fmt.Sprintf("%s → %s (%s, %s)", from, to, t.Interface, t.Address)
			switch {
			case t.Own:
				more = append(more, line+": both hosts have this address, not tried")
				continue
			case t.TCP != "":
				fails = append(fails, line+": "+t.TCP)
				reasons = append(reasons, t.TCP)
			case t.Datagram != "":
				blocked = append(blocked, line+": "+t.Datagram)
				good = t.Interface
			default:
				good = t.Interface
			}
			more = append(more, line+": "+okOr(t.TCP))
		}
		tried := len(trials) - count(trials, func(t Trial) bool { return t.Own })
		switch {
		case tried == 0:
			broken = append(broken, fmt.Sprintf("%s → %s: no address to try", from, to))
		case len(fails) == tried:
			broken = append(broken, fails[0])
		case len(fails) > 0:
			half = append(half, fails...)
			working++
		default:
			working++
		}
	})
	var f Finding
	switch {
	case pairs == 0:
		f = problem("see the line reach", "no two hosts answered")
	case len(broken) > 0:
		f = problem(connectAdvice(reasons), "%s", someOf(broken))
	case len(half) > 0:
		f = warn("select the interface for jobs: MUSTER_INTERFACE="+good, "some addresses do not work: %s", someOf(half))
	case len(blocked) > 0:
		f = warn("TCP works, UDP does not: allow UDP between the hosts, or use a provider over TCP (MUSTER_NETWORK=ofi:net)", "%s", someOf(blocked))
	default:
		f = fine("all %d directions work", working)
	}
	return []Finding{f.addLines(more...).addHosts(answeringHosts(s)...)}
}

// connectAdvice returns advice for the kernel's error messages.
func connectAdvice(reasons []string) string {
	all := strings.Join(reasons, " ")
	switch {
	case strings.Contains(all, "timeout"):
		return "a firewall drops packets or the route is wrong: allow TCP between the hosts on all ephemeral ports (see the line ports)"
	case strings.Contains(all, "refused"), strings.Contains(all, "prohibited"):
		return "a firewall refuses: allow TCP between the hosts on all ephemeral ports (see the line ports)"
	case strings.Contains(all, "no route"), strings.Contains(all, "unreachable"):
		return "the hosts are not on one network and have no route to each other: see ip route there"
	case strings.Contains(all, "another program"):
		return "another machine has the same address: check for duplicate addresses, and for NAT between the hosts"
	}
	return "check the firewall and the routes of these hosts"
}

// judgePacketSize requires that packets of full size arrive, and that the MTUs of all
// hosts are equal.
func judgePacketSize(s *Survey) []Finding {
	var dropped, more []string
	tried := 0
	sizes := map[int]bool{}
	forEachPair(s, func(from, to string, trials []Trial) {
		for _, t := range trials {
			if t.Own || t.TCP != "" || t.Datagram != "" || t.FullSize == 0 {
				continue
			}
			tried++
			sizes[t.FullSize] = true
			line := fmt.Sprintf("%s → %s (%s, %s): %d bytes", from, to, t.Interface, t.Address, t.FullSize)
			if t.Full != "" {
				dropped = append(dropped, line+" "+t.Full)
			}
			more = append(more, line+" "+okOr(t.Full))
		}
	})
	var f Finding
	switch {
	case len(dropped) > 0:
		f = problem("set one MTU on both ends and on all devices between (ip link set DEVICE mtu N), and allow ICMP", "%s", someOf(dropped))
	case tried == 0:
		f = fine("not tried: no UDP packet arrives")
	case len(sizes) > 1:
		f = warn("set one MTU on all hosts (ip link set DEVICE mtu N)", "full packets arrive, but the MTUs differ: %s", join(sizes))
	default:
		f = fine("packets of %s bytes arrive without fragmentation", join(sizes))
	}
	return []Finding{f.addLines(more...).addHosts(answeringHosts(s)...)}
}

const maxOffset = time.Second

func judgeSameTime(s *Survey) []Finding {
	var wrong, names, more []string
	var most time.Duration
	for _, v := range s.Hosts {
		if v.Facts == nil || v.Here {
			continue
		}
		more = append(more, fmt.Sprintf("%s: %v ahead, ± %v", v.Name, v.Offset.Round(time.Microsecond), v.Unsure.Round(time.Microsecond)))
		offset := max(v.Offset.Abs()-v.Unsure, 0)
		most = max(most, v.Offset.Abs())
		if offset > maxOffset {
			direction := "ahead"
			if v.Offset < 0 {
				direction = "behind"
			}
			wrong = append(wrong, fmt.Sprintf("%s is %v %s", v.Name, v.Offset.Abs().Round(100*time.Millisecond), direction))
			names = append(names, v.Name)
		}
	}
	if len(wrong) > 0 {
		return []Finding{warn("synchronize the clocks with chrony or systemd-timesyncd: timedatectl set-ntp true", "%s", someOf(wrong)).addLines(more...).addHosts(names...)}
	}
	return []Finding{fine("clocks agree within %v", most.Round(time.Microsecond)).addLines(more...).addHosts(answeringHosts(s)...)}
}

// groupHosts groups the hosts that answered by a key.
func groupHosts(s *Survey, key func(*Facts) string) map[string][]string {
	groups := map[string][]string{}
	for _, v := range s.Hosts {
		if v.Facts != nil {
			groups[key(v.Facts)] = append(groups[key(v.Facts)], v.Name)
		}
	}
	return groups
}

// bySize returns the keys of groups, the largest group first.
func bySize(groups map[string][]string) []string {
	keys := make([]string, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if n := len(groups[b]) - len(groups[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	return keys
}

// describe lists the values with their hosts.
func describe(groups map[string][]string) string {
	var parts []string
	for _, k := range bySize(groups) {
		what := k
		if what == "" {
			what = "none"
		}
		parts = append(parts, what+" on "+someOf(groups[k]))
	}
	return strings.Join(parts, ", ")
}

// odd returns the hosts outside the largest group.
func odd(groups map[string][]string) (hosts []string) {
	for _, k := range bySize(groups)[1:] {
		hosts = append(hosts, groups[k]...)
	}
	return hosts
}

func answeringHosts(s *Survey) (names []string) {
	for _, v := range s.Hosts {
		if v.Facts != nil {
			names = append(names, v.Name)
		}
	}
	return names
}

// forEachPair calls call for every ordered pair of hosts that answered.
func forEachPair(s *Survey, call func(from, to string, trials []Trial)) {
	type way struct{ from, to string }
	ways := map[way][]Trial{}
	for _, t := range s.Trials {
		ways[way{t.From, t.To}] = append(ways[way{t.From, t.To}], t)
	}
	for _, from := range answeringHosts(s) {
		for _, to := range answeringHosts(s) {
			if from != to {
				call(from, to, ways[way{from, to}])
			}
		}
	}
}

func count[T any](list []T, is func(T) bool) (n int) {
	for _, v := range list {
		if is(v) {
			n++
		}
	}
	return n
}

// someOf joins a list, shortened to a few entries.
func someOf(list []string) string {
	const most = 3
	if len(list) > most+1 {
		return strings.Join(list[:most], "; ") + fmt.Sprintf("; and %d more", len(list)-most)
	}
	return strings.Join(list, "; ")
}

func join(set map[int]bool) string {
	var list []int
	for n := range set {
		list = append(list, n)
	}
	slices.Sort(list)
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}

func okOr(err string) string {
	if err == "" {
		return "ok"
	}
	return err
}
