package doctor

// Checks of a single host.

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const mebibyte = 1 << 20

func judgeVersion(f *Facts, _ bool) Finding {
	what := fmt.Sprintf("muster %s, %s, %s %s %s", f.Muster, f.Go, f.OS, f.Kernel, f.Arch)
	var major, minor int
	_, err := fmt.Sscanf(f.Kernel, "%d.%d", &major, &minor)
	switch {
	case f.OS != "linux":
		return warn("use this system for development; run jobs on Linux", "%s: ranks are slower and not bound to cores on this system", what)
	case err == nil && (major < 4 || major == 4 && minor < 14):
		return warn("use Linux 4.14 or newer: older ones lack membarrier and memfd seals, and Muster uses slower replacements", "%s: the kernel is old", what)
	}
	return fine("%s", what)
}

const slowResolver = time.Second

func judgeName(f *Facts, many bool) Finding {
	n := f.Names
	advice := fmt.Sprintf("add a line for %s to /etc/hosts or to the DNS", f.Hostname)
	if f.Kubernetes {
		advice = "give the pod a hostname and a subdomain, and create a headless service with that name (see examples/kubernetes)"
	}
	remote := false
	for _, a := range n.Addresses {
		remote = remote || !strings.HasPrefix(a, "127.") && a != "::1"
	}
	switch {
	case n.Error != "":
		return warn(advice, "%s cannot be resolved: %s", f.Hostname, n.Error)
	case n.Took > slowResolver:
		return warn("check the name servers in /etc/resolv.conf, or add the name to /etc/hosts", "resolving %s took %v", f.Hostname, n.Took.Round(100*time.Millisecond))
	case many && !remote:
		return warn(advice+" with an address that other hosts can reach; Muster itself uses interface addresses",
			"%s resolves only to %s here, which other hosts cannot use", f.Hostname, strings.Join(n.Addresses, ", "))
	}
	return fine("%s is %s", f.Hostname, strings.Join(n.Addresses, ", "))
}

// Thresholds of shared memory, for hosts without memfd, and of available memory.
const (
	minSharedPerRank = mebibyte
	goodShared       = 64 * mebibyte
	minMemory        = 256 * mebibyte
)

func judgeShared(f *Facts, _ bool) Finding {
	if f.OS != "linux" {
		return fine("not checked on %s", f.OS)
	}
	s := f.Shared
	memory := s.Available
	if s.Limit > 0 {
		memory = min(memory, s.Limit)
	}
	const enlarge = "enlarge it: mount -o remount,size=1G /dev/shm; docker run --shm-size=1g; in Kubernetes an emptyDir with medium: Memory"
	switch {
	case s.MemfdError != "" && s.DirError != "":
		return problem("allow memfd_create in the seccomp profile, or mount a tmpfs on "+s.Dir+" that can be written", "no memfd (%s) and no %s (%s)", s.MemfdError, s.Dir, s.DirError)
	case s.MemfdError != "" && s.DirFree < minSharedPerRank*int64(max(1, f.Threads)):
		return problem(enlarge, "no memfd (%s), and %s has only %s free", s.MemfdError, s.Dir, size(s.DirFree))
	case s.MemfdError != "" && s.DirFree < goodShared:
		return warn(enlarge+"; or allow memfd_create", "no memfd (%s), and %s has only %s free", s.MemfdError, s.Dir, size(s.DirFree))
	case memory < minMemory:
		return warn("stop programs that use the memory, or raise the limit of the container", "only %s of memory are available", size(memory))
	}
	how := "memfd"
	if s.MemfdError != "" {
		how = "files in " + s.Dir + " (no memfd: " + s.MemfdError + ")"
	}
	limit := "no cgroup limit"
	if s.Limit > 0 {
		limit = "cgroup limit " + size(s.Limit)
	}
	return fine("%s, %s of memory available", how, size(memory)).addLines(
		fmt.Sprintf("%s: %s, %s free", s.Dir, size(s.DirSize), size(s.DirFree)), limit)
}

func judgeProcessVM(f *Facts, _ bool) Finding {
	p := f.ProcessVM
	switch {
	case f.OS != "linux":
		return fine("not available on %s", f.OS)
	case p.Error == "":
		return fine("a process can copy from another's memory").addLines(fmt.Sprintf("kernel.yama.ptrace_scope %d, system calls filtered: %v", p.Yama, p.Seccomp))
	case !strings.Contains(p.Error, "process_vm_readv"):
		return warn("run muster doctor again; check what prevents muster from starting itself", "%s", p.Error)
	case p.Yama > 0:
		return warn("sysctl kernel.yama.ptrace_scope=0 (on the host, if this is a container)", "refused by the kernel's ptrace_scope %d: %s", p.Yama, p.Error)
	case p.Seccomp:
		return warn("docker run --cap-add SYS_PTRACE, or a seccomp profile that allows process_vm_readv and process_vm_writev", "refused, and system calls are filtered here: %s", p.Error)
	}
	return warn("check for a security module (SELinux deny_ptrace, AppArmor) that forbids ptrace between processes of one user", "refused: %s", p.Error)
}

const (
	minFiles     = 256
	goodFiles    = 1024
	minProcesses = 1024
)

func judgeFiles(f *Facts, _ bool) Finding {
	n, most := f.Limits.Files, f.Limits.FilesMax
	if n < 0 {
		return fine("no limit")
	}
	advice := "raise it: ulimit -n 65536, or LimitNOFILE of the service that starts jobs"
	if most >= 0 && most < 65536 {
		advice = "raise it: nofile in /etc/security/limits.conf (hard limit now " + fmt.Sprint(most) + "), or LimitNOFILE of the service that starts jobs"
	}
	switch {
	case n < minFiles:
		return problem(advice, "a process may open only %d files", n)
	case n < goodFiles:
		return warn(advice, "a process may open only %d files", n)
	}
	return fine("%d", n)
}

func judgeProcesses(f *Facts, _ bool) Finding {
	switch n := f.Limits.Processes; {
	case n < 0:
		return fine("no limit")
	case n < minProcesses:
		return warn("raise it: ulimit -u, nproc in /etc/security/limits.conf, pids.max of the container (docker run --pids-limit)", "only %d processes and threads are allowed", n)
	default:
		return fine("%d", n)
	}
}

// minLocked is enough for the registration cache of a few ranks.
const minLocked = 1 << 30

func judgeLocked(f *Facts, _ bool) Finding {
	n := f.Limits.Locked
	text := "no limit"
	if n >= 0 {
		text = size(n)
	}
	adapters := strings.Join(f.Limits.Adapters, ", ")
	if adapters != "" && n >= 0 && n < minLocked {
		return problem("memlock unlimited in /etc/security/limits.conf; for Slurm LimitMEMLOCK=infinity of slurmd; docker run --ulimit memlock=-1",
			"only %s, and there are RDMA adapters (%s)", text, adapters)
	}
	if adapters == "" {
		return fine("%s; no RDMA adapter needs it", text)
	}
	return fine("%s; RDMA adapters: %s", text, adapters)
}

func judgeCPU(f *Facts, _ bool) Finding {
	if f.Quota > 0 && f.Quota < float64(f.Threads) {
		ranks := int(math.Max(1, math.Floor(f.Quota)))
		return warn(fmt.Sprintf("start at most %d ranks here, or raise the limit (docker run --cpus, resources.limits.cpu)", ranks),
			"%d hardware threads, but the cgroup allows CPU time of only %.3g", f.Threads, f.Quota)
	}
	return fine("%d hardware threads, no quota", f.Threads)
}

func judgeClock(f *Facts, _ bool) Finding {
	switch f.Clock {
	case "":
		return fine("clock source unknown")
	case "hpet", "acpi_pm", "jiffies", "refined-jiffies":
		return warn("see dmesg for why the kernel does not use tsc; on virtual machines select the hypervisor's clock in /sys/devices/system/clocksource/clocksource0",
			"clock source %s: reading the time takes about a microsecond", f.Clock)
	}
	return fine("clock source %s", f.Clock)
}

func judgeHugePages(f *Facts, _ bool) Finding {
	switch f.HugePages {
	case "":
		return fine("unknown")
	case "never":
		return warn("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled", "transparent huge pages are switched off")
	}
	return fine("transparent huge pages: %s", f.HugePages)
}
