package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// healthy returns the facts of a host without faults.
func healthy() *Facts {
	return &Facts{
		Identity: "boot net", Hostname: "a", Muster: "v1.2.3", Go: "go1.26", OS: "linux", Arch: "amd64", Kernel: "6.1.0-28-amd64",
		Names: Names{Addresses: []string{"10.0.0.1"}, Took: time.Millisecond},
		Interfaces: []Interface{
			{Name: "lo", Networks: []string{"127.0.0.1/8"}, MTU: 65536, Loopback: true, Carrier: true},
			{Name: "eth0", Networks: []string{"10.0.0.1/24", "fe80::1/64"}, MTU: 1500, Speed: 10000, Carrier: true},
		},
		Routes: []Route{{To: "default", Via: "10.0.0.254", Interface: "eth0"}, {To: "10.0.0.0/24", Interface: "eth0"}},
		Ports:  Ports{Low: 32768, High: 60999},
		Shared: Shared{Dir: "/dev/shm", DirSize: 1 << 30, DirFree: 1 << 30, Available: 8 << 30},
		Limits: Limits{Files: 4096, FilesMax: 1 << 20, Processes: 30000, Locked: 8 << 20}, Threads: 8, Clock: "tsc", HugePages: "madvise",
		Fabric: Fabric{Built: true, Version: "1.17", Taken: "net on eth0 (10.0.0.1)", Reason: "the only one", Offers: []string{"net on eth0 (10.0.0.1), RDM"}},
	}
}

func TestHealthyHost(t *testing.T) {
	for _, res := range Judge(&Survey{Hosts: []Visit{{Name: "a", Here: true, Facts: healthy()}}}) {
		for _, f := range res.Findings {
			if f.Level != OK || f.Advice != "" || f.Detail == "" {
				t.Errorf("%s: %+v", res.Check, f)
			}
		}
	}
}

// hostFault is a change to a healthy host and the expected finding.
type hostFault struct {
	check  string
	what   string
	many   bool
	change func(*Facts)
	level  Level
	detail string // a part of it
	advice string
}

var hostFaults = []hostFault{
	{"version", "an old kernel", false, func(f *Facts) { f.Kernel = "3.10.0-1160.el7" }, Warning, "kernel is old", "4.14"},
	{"version", "another system", false, func(f *Facts) { f.OS = "darwin"; f.Kernel = "" }, Warning, "not bound to cores", "run jobs on Linux"},
	{"host name", "an unknown own name", false, func(f *Facts) { f.Names = Names{Error: "no such host"} }, Warning, "a cannot be resolved: no such host", "line for a to /etc/hosts"},
	{"host name", "a pod without a service", false, func(f *Facts) { f.Kubernetes = true; f.Names = Names{Error: "no such host"} }, Warning, "cannot be resolved", "headless service"},
	{"host name", "a slow resolver", false, func(f *Facts) { f.Names.Took = 5 * time.Second }, Warning, "took 5s", "resolv.conf"},
	{"host name", "a name for loopback among several hosts", true, func(f *Facts) { f.Names.Addresses = []string{"127.0.1.1"} }, Warning, "127.0.1.1", "that other hosts can reach"},
	{"host name", "a name for loopback on one host", false, func(f *Facts) { f.Names.Addresses = []string{"127.0.1.1"} }, OK, "a is 127.0.1.1", ""},
	{"interfaces", "no network, on one host", false, func(f *Facts) { f.Interfaces = f.Interfaces[:1] }, OK, "only loopback", ""},
	{"interfaces", "no network, among several", true, func(f *Facts) { f.Interfaces = f.Interfaces[:1] }, Problem, "no interface but loopback", "ip addr"},
	{"interfaces", "no cable, among several", true, func(f *Facts) { f.Interfaces[1].Carrier = false }, Problem, "no carrier on eth0", "cable"},
	{"interfaces", "no cable, on one host", false, func(f *Facts) { f.Interfaces[1].Carrier = false }, Warning, "no carrier on eth0", "cable"},
	{"interfaces", "one cable of two", true, func(f *Facts) {
		f.Interfaces = append(f.Interfaces, Interface{Name: "eth1", Networks: []string{"10.0.1.1/24"}, MTU: 1500})
	}, Warning, "no carrier on eth1; eth0 10.0.0.1 works", "MUSTER_INTERFACE=eth0"},
	{"interfaces", "a slow card", false, func(f *Facts) { f.Interfaces[1].Speed = 100 }, Warning, "eth0 (100 Mbit/s)", "ethtool"},
	{"interfaces", "a small MTU", false, func(f *Facts) { f.Interfaces[1].MTU = 576 }, Warning, "eth0 (576)", "mtu 1500"},
	{"routes", "two cards in one network", false, func(f *Facts) {
		f.Interfaces = append(f.Interfaces, Interface{Name: "eth1", Networks: []string{"10.0.0.7/24"}, MTU: 1500, Carrier: true})
	}, Warning, "eth0 and eth1 are both in 10.0.0.0/24", "MUSTER_INTERFACE"},
	{"routes", "none", false, func(f *Facts) { f.Routes = nil }, OK, "none but loopback", ""},
	{"ports", "no sockets", false, func(f *Facts) { f.Ports.Error = "operation not permitted" }, Problem, "operation not permitted", "lo up"},
	{"ports", "few ports", false, func(f *Facts) { f.Ports.Low = 60000 }, Warning, "only 1000 ephemeral ports", "ip_local_port_range"},
	{"libfabric", "none built in, on one host", false, func(f *Facts) { f.Fabric = Fabric{Error: "no libfabric"} }, OK, "software iWARP", ""},
	{"libfabric", "none built in, among several", true, func(f *Facts) { f.Fabric = Fabric{Error: "no libfabric"} }, OK, "software iWARP", ""},
	{"libfabric", "none built in, with an adapter", false, func(f *Facts) { f.Fabric = Fabric{}; f.Limits.Adapters = []string{"mlx5_0"} }, Warning, "would use mlx5_0", "-tags ofi"},
	{"libfabric", "not installed, on one host", false, func(f *Facts) { f.Fabric = Fabric{Built: true, Error: "no libfabric"} }, Warning, "no libfabric", "apt install libfabric1"},
	{"libfabric", "not installed, among several", true, func(f *Facts) { f.Fabric = Fabric{Built: true, Error: "no libfabric"} }, Problem, "no libfabric", "apt install libfabric1"},
	{"libfabric", "offers nothing", true, func(f *Facts) { f.Fabric = Fabric{Built: true, Version: "1.17"} }, Problem, "offers nothing", "muster explain network"},
	{"libfabric", "TCP although there is an adapter", true, func(f *Facts) { f.Limits.Adapters = []string{"mlx5_0"}; f.Limits.Locked = -1 }, Warning, "although there are RDMA adapters (mlx5_0)", "fi_info -p verbs"},
	{"shared memory", "nothing at all", false, func(f *Facts) { f.Shared.MemfdError = "EPERM"; f.Shared.DirError = "ENOENT" }, Problem, "no memfd (EPERM) and no /dev/shm (ENOENT)", "seccomp"},
	{"shared memory", "next to nothing", false, func(f *Facts) { f.Shared.MemfdError = "EPERM"; f.Shared.DirFree = 1 << 20 }, Problem, "only 1 MB free", "--shm-size"},
	{"shared memory", "little", false, func(f *Facts) { f.Shared.MemfdError = "EPERM"; f.Shared.DirFree = 60 << 20 }, Warning, "only 60 MB free", "memfd_create"},
	{"shared memory", "enough in files", false, func(f *Facts) { f.Shared.MemfdError = "EPERM" }, OK, "files in /dev/shm", ""},
	{"shared memory", "a tiny container", false, func(f *Facts) { f.Shared.Limit = 128 << 20 }, Warning, "only 128 MB", "limit of the container"},
	{"process_vm", "ptrace_scope", false, func(f *Facts) {
		f.ProcessVM = ProcessVM{Error: "process_vm_readv: operation not permitted", Yama: 1, Seccomp: true}
	}, Warning, "ptrace_scope 1", "kernel.yama.ptrace_scope=0"},
	{"process_vm", "a filter", false, func(f *Facts) {
		f.ProcessVM = ProcessVM{Error: "process_vm_readv: operation not permitted", Seccomp: true}
	}, Warning, "filtered", "SYS_PTRACE"},
	{"process_vm", "something else", false, func(f *Facts) { f.ProcessVM = ProcessVM{Error: "process_vm_readv: operation not permitted"} }, Warning, "not permitted", "SELinux"},
	{"process_vm", "no trial", false, func(f *Facts) { f.ProcessVM = ProcessVM{Error: "the trial could not be made: x"} }, Warning, "could not be made: x", "run muster doctor again"},
	{"open files", "very few", false, func(f *Facts) { f.Limits.Files = 64 }, Problem, "only 64", "ulimit -n"},
	{"open files", "few, and no more allowed", false, func(f *Facts) { f.Limits.Files = 512; f.Limits.FilesMax = 512 }, Warning, "only 512", "limits.conf"},
	{"open files", "no limit", false, func(f *Facts) { f.Limits.Files = -1 }, OK, "no limit", ""},
	{"processes", "few", false, func(f *Facts) { f.Limits.Processes = 100 }, Warning, "only 100", "--pids-limit"},
	{"processes", "no limit", false, func(f *Facts) { f.Limits.Processes = -1 }, OK, "no limit", ""},
	{"locked memory", "little for an adapter", false, func(f *Facts) { f.Limits.Adapters = []string{"mlx5_0"} }, Problem, "only 8 MB, and there are RDMA adapters (mlx5_0)", "memlock"},
	{"locked memory", "enough for an adapter", false, func(f *Facts) { f.Limits.Adapters = []string{"mlx5_0"}; f.Limits.Locked = -1 }, OK, "no limit; RDMA adapters: mlx5_0", ""},
	{"cpu", "a quota", false, func(f *Facts) { f.Quota = 2.5 }, Warning, "CPU time of only 2.5", "at most 2 ranks"},
	{"clock", "a slow source", false, func(f *Facts) { f.Clock = "hpet" }, Warning, "hpet", "dmesg"},
	{"clock", "an unknown source", false, func(f *Facts) { f.Clock = "" }, OK, "unknown", ""},
	{"huge pages", "none", false, func(f *Facts) { f.HugePages = "never" }, Warning, "switched off", "madvise"},
}

func TestHostFaults(t *testing.T) {
	for _, s := range hostFaults {
		t.Run(s.check+", "+s.what, func(t *testing.T) {
			f := healthy()
			s.change(f)
			survey := &Survey{Hosts: []Visit{{Name: "a", Here: true, Facts: f}}}
			if s.many {
				survey.Hosts = append(survey.Hosts, Visit{Name: "b", Facts: healthy()})
			}
			expect(t, survey, s.check, s.level, s.detail, s.advice)
		})
	}
}

func expect(t *testing.T, s *Survey, check string, level Level, detail, advice string) {
	t.Helper()
	var seen []string
	for _, res := range Judge(s) {
		if res.Check != check {
			continue
		}
		for _, f := range res.Findings {
			if (f.Level == OK) != (f.Advice == "") {
				t.Errorf("advice and level do not fit: %+v", f)
			}
			if f.Level == level && strings.Contains(f.Detail, detail) && strings.Contains(f.Advice, advice) {
				return
			}
			seen = append(seen, fmt.Sprintf("%s: %s → %s", f.Level, f.Detail, f.Advice))
		}
	}
	t.Errorf("want %s: …%s… → …%s…\nhave %s", level, detail, advice, strings.Join(seen, "\n     "))
}

// pair returns two healthy hosts that reach each other.
func pair() *Survey {
	b := healthy()
	b.Identity, b.Hostname = "boot2 net", "b"
	return &Survey{
		Hosts: []Visit{{Name: "a", Here: true, Facts: healthy()}, {Name: "b", Facts: b, Took: 200 * time.Millisecond, Offset: time.Millisecond, Unsure: time.Millisecond}},
		Trials: []Trial{
			{From: "a", To: "b", Address: "10.0.0.2", Interface: "eth0", FullSize: 1500},
			{From: "b", To: "a", Address: "10.0.0.1", Interface: "eth0", FullSize: 1500},
		},
	}
}

func unreachable(err string) func(*Survey) {
	return func(s *Survey) { s.Hosts[1] = Visit{Name: "b", Error: err} }
}

func TestFaultsBetweenHosts(t *testing.T) {
	for _, s := range []struct {
		check  string
		what   string
		change func(*Survey)
		level  Level
		detail string
		advice string
	}{
		{"reach", "fine", func(*Survey) {}, OK, "within 200ms", ""},
		{"reach", "no key", unreachable("ended: root@b: Permission denied (publickey)."), Problem, "Permission denied", "ssh-copy-id b"},
		{"reach", "an unknown host key", unreachable("Host key verification failed."), Problem, "Host key", "ssh b"},
		{"reach", "a wrong name", unreachable("ssh: Could not resolve hostname b: Name or service not known"), Problem, "resolve", "correct the name"},
		{"reach", "no namespace", unreachable(`Cannot open network namespace "b": No such file or directory`), Problem, "namespace", "ip netns list"},
		{"reach", "no remote shell", unreachable(`cannot start nosh: exec: "nosh": executable file not found in $PATH`), Problem, "nosh", "--rsh"},
		{"reach", "no muster", unreachable("bash: line 1: muster: command not found"), Problem, "not found", "--agent-path"},
		{"reach", "an older muster", unreachable(`muster: unknown command "doctor" for "muster"`), Problem, "unknown command", "same version"},
		{"reach", "no sshd", unreachable("ssh: connect to host b port 22: Connection refused"), Problem, "refused", "start sshd"},
		{"reach", "switched off", unreachable("ssh: connect to host b port 22: No route to host"), Problem, "No route", "switched on"},
		{"reach", "silent", unreachable("no answer in time"), Problem, "no answer in time", "switched on"},
		{"reach", "anything else", unreachable("strange"), Problem, "strange", "by hand"},
		{"reach", "slow", func(s *Survey) { s.Hosts[1].Took = 9 * time.Second }, Warning, "9s", "login shell"},
		{"reach", "two names", func(s *Survey) { s.Hosts[1].Facts.Identity = s.Hosts[0].Facts.Identity }, Warning, "a and b are one host", "list it once"},
		{"same version", "fine", func(*Survey) {}, OK, "same everywhere", ""},
		{"same version", "another muster", func(s *Survey) { s.Hosts[1].Facts.Muster = "v0.9" }, Problem, "v0.9 on b", "one version of muster"},
		{"same version", "another build", func(s *Survey) { s.Hosts[1].Facts.Build = "abc" }, Warning, "v1.2.3 abc on b", "copy one file"},
		{"same version", "another machine", func(s *Survey) { s.Hosts[1].Facts.Arch = "arm64" }, Problem, "linux/arm64 on b", "hosts of one architecture"},
		{"same libfabric", "fine", func(*Survey) {}, OK, "same everywhere", ""},
		{"same libfabric", "another provider", func(s *Survey) { s.Hosts[1].Facts.Fabric.Taken = "verbs;ofi_rxm on mlx5_0" }, Problem, "verbs;ofi_rxm on b", "MUSTER_NETWORK"},
		{"same libfabric", "another build", func(s *Survey) { s.Hosts[1].Facts.Fabric = Fabric{} }, Problem, "without libfabric on b", "same build"},
		{"same libfabric", "another version", func(s *Survey) { s.Hosts[1].Facts.Fabric.Version = "2.1" }, Warning, "2.1 on b", "one version of libfabric"},
		{"connect", "fine", func(*Survey) {}, OK, "all 2 directions", ""},
		{"connect", "a firewall that drops", func(s *Survey) { s.Trials[0].TCP = "timeout" }, Problem, "a → b (eth0, 10.0.0.2): timeout", "firewall drops"},
		{"connect", "a firewall that refuses", func(s *Survey) { s.Trials[0].TCP = "connect: connection refused" }, Problem, "refused", "firewall refuses"},
		{"connect", "no route", func(s *Survey) { s.Trials[0].TCP = "connect: no route to host" }, Problem, "no route", "ip route"},
		{"connect", "a doubled address", func(s *Survey) { s.Trials[0].TCP = "another program answers there" }, Problem, "another program", "duplicate"},
		{"connect", "anything else", func(s *Survey) { s.Trials[0].TCP = "strange" }, Problem, "strange", "firewall and the routes"},
		{"connect", "only an address of both", func(s *Survey) { s.Trials[0].Own = true }, Problem, "no address to try", "firewall and the routes"},
		{"connect", "one address of two", func(s *Survey) {
			s.Trials = append(s.Trials, Trial{From: "a", To: "b", Address: "10.9.0.2", Interface: "eth1", TCP: "timeout"})
		}, Warning, "10.9.0.2", "MUSTER_INTERFACE=eth0"},
		{"connect", "a container's bridge", func(s *Survey) {
			s.Trials = append(s.Trials, Trial{From: "a", To: "b", Address: "172.17.0.1", Interface: "docker0", Own: true})
		}, OK, "all 2 directions", ""},
		{"connect", "no UDP", func(s *Survey) { s.Trials[0].Datagram = "lost on the way" }, Warning, "lost", "allow UDP"},
		{"packet size", "fine", func(*Survey) {}, OK, "packets of 1500 bytes arrive", ""},
		{"packet size", "dropped", func(s *Survey) { s.Trials[0].FullSize = 9000; s.Trials[0].Full = "lost on the way" }, Problem, "9000 bytes lost on the way", "one MTU on both ends"},
		{"packet size", "not the same", func(s *Survey) { s.Trials[0].FullSize = 9000 }, Warning, "1500, 9000", "one MTU on all hosts"},
		{"packet size", "not known", func(s *Survey) { s.Trials = nil }, OK, "not tried", ""},
		{"same time", "fine", func(*Survey) {}, OK, "within 1ms", ""},
		{"same time", "behind", func(s *Survey) { s.Hosts[1].Offset = -3 * time.Second }, Warning, "b is 3s behind", "chrony"},
		{"same time", "ahead", func(s *Survey) { s.Hosts[1].Offset = time.Hour }, Warning, "b is 1h0m0s ahead", "chrony"},
		{"same time", "a slow connection is inconclusive", func(s *Survey) { s.Hosts[1].Offset = 2 * time.Second; s.Hosts[1].Unsure = 2 * time.Second }, OK, "", ""},
	} {
		t.Run(s.check+", "+s.what, func(t *testing.T) {
			survey := pair()
			s.change(survey)
			expect(t, survey, s.check, s.level, s.detail, s.advice)
		})
	}
}

func TestEveryCheckIsTested(t *testing.T) {
	covered := map[string]bool{}
	for _, s := range hostFaults {
		covered[s.check] = true
	}
	for _, c := range Checks() {
		if c.Why == "" || (c.Host == nil) == (c.Between == nil) {
			t.Errorf("%s: a check must have a reason and judge either one host or several", c.Name)
		}
		if c.Host != nil && !covered[c.Name] {
			t.Errorf("no fault for %s", c.Name)
		}
	}
}

func TestReportGroupsHosts(t *testing.T) {
	s := pair()
	s.Hosts[0].Facts.HugePages, s.Hosts[1].Facts.HugePages = "never", "never"
	s.Hosts[1].Facts.Clock = "hpet"
	var b strings.Builder
	report := NewReport(s)
	if err := report.WriteText(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"warning  huge pages      all: transparent huge pages are switched off\n                         → echo",
		"warning  clock           b: clock source hpet",
		"ok       cpu             all: 8 hardware threads",
		"20 checks: 18 ok, 2 warnings, 0 problems",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
	if report.Problems != 0 || report.Warnings != 2 {
		t.Errorf("%d problems, %d warnings", report.Problems, report.Warnings)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 20: "1 MB", 3 << 19: "1.5 MB", 60 << 20: "60 MB", 8 << 30: "8 GB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
