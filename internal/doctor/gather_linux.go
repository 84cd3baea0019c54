package doctor

// Facts from /proc and /sys on Linux, and facts that can only be tested.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const shmDir = "/dev/shm"

func gatherSystem(f *Facts) {
	f.Identity = line("/proc/sys/kernel/random/boot_id")
	if ns, err := os.Readlink("/proc/self/ns/net"); err == nil {
		f.Identity += " " + ns
	}
	f.Kernel = line("/proc/sys/kernel/osrelease")
	if text, err := os.ReadFile("/proc/net/route"); err == nil {
		f.Routes = parseRoutes(string(text))
	}
	_, _ = fmt.Sscan(line("/proc/sys/net/ipv4/ip_local_port_range"), &f.Ports.Low, &f.Ports.High) // 0: unknown
	gatherShared(&f.Shared)
	f.ProcessVM.Yama, _ = strconv.Atoi(line("/proc/sys/kernel/yama/ptrace_scope"))
	f.ProcessVM.Seccomp = field("/proc/self/status", "Seccomp:") == "2"
	gatherLimits(&f.Limits)
	f.Clock = line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	f.HugePages = readChoice(line("/sys/kernel/mm/transparent_hugepage/enabled"))
}

// line returns the content of a file with one line, or "" if it cannot be read.
func line(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// field returns the first word after a key at the start of a line.
func field(path, key string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(l, key); found {
			if words := strings.Fields(rest); len(words) > 0 {
				return words[0]
			}
		}
	}
	return ""
}

// readChoice returns the word in brackets: "always [madvise] never".
func readChoice(s string) string {
	_, rest, _ := strings.Cut(s, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// parseRoutes parses /proc/net/route, where addresses are hexadecimal numbers in native
// byte order.
func parseRoutes(text string) (routes []Route) {
	for l := range strings.Lines(text) {
		w := strings.Fields(l)
		if len(w) < 8 || w[0] == "Iface" {
			continue
		}
		to, ok1 := routeAddr(w[1])
		via, ok2 := routeAddr(w[2])
		mask, ok3 := routeAddr(w[7])
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		bits := 0
		for m := mask.As4(); bits < 32 && m[bits/8]&(0x80>>(bits%8)) != 0; {
			bits++
		}
		r := Route{To: netip.PrefixFrom(to, bits).String(), Interface: w[0]}
		if bits == 0 {
			r.To = "default"
		}
		if !via.IsUnspecified() {
			r.Via = via.String()
		}
		routes = append(routes, r)
	}
	return routes
}

func routeAddr(hex string) (netip.Addr, bool) {
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		return netip.Addr{}, false
	}
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(n))
	return netip.AddrFrom4(b), true
}

func gatherShared(s *Shared) {
	s.MemfdError = tryMemfd()
	s.Dir = shmDir
	var fs unix.Statfs_t
	if err := unix.Statfs(shmDir, &fs); err != nil {
		s.DirError = err.Error()
	} else {
		s.DirSize, s.DirFree = int64(fs.Blocks)*int64(fs.Bsize), int64(fs.Bavail)*int64(fs.Bsize)
		if err := unix.Access(shmDir, unix.W_OK); err != nil {
			s.DirError = err.Error()
		}
	}
	kb, _ := strconv.ParseInt(field("/proc/meminfo", "MemAvailable:"), 10, 64)
	s.Available = kb << 10
	s.Limit = memoryLimit()
}

// tryMemfd creates and uses shared memory as a rank does.
func tryMemfd() string {
	const size = 1 << 20
	fd, err := unix.MemfdCreate("muster-doctor", unix.MFD_CLOEXEC)
	if err != nil {
		return "memfd_create: " + err.Error()
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, size); err != nil {
		return "ftruncate: " + err.Error()
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return "mmap: " + err.Error()
	}
	defer func() { _ = unix.Munmap(mem) }()
	copy(mem[size-4:], "here")
	got := make([]byte, 4)
	if _, err := unix.Pread(fd, got, size-4); err != nil || !bytes.Equal(got, []byte("here")) {
		return fmt.Sprintf("written data cannot be read back: %q, %v", got, err)
	}
	return ""
}

// memoryLimit returns the lowest limit of the cgroups of this process. In a container the
// path may not be visible; the limit is then at the root.
func memoryLimit() int64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	lowest := int64(0)
	for l := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(l), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		if parts[1] == "memory" {
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		for group := parts[2]; ; group = filepath.Dir(group) {
			// "max", and the huge number of v1, mean no limit.
			n, err := strconv.ParseInt(line(filepath.Join(root, group, file)), 10, 64)
			if err == nil && n > 0 && n < 1<<60 && (lowest == 0 || n < lowest) {
				lowest = n
			}
			if group == "/" || group == "." {
				break
			}
		}
	}
	return lowest
}

func gatherLimits(l *Limits) {
	l.Files, l.FilesMax = limit(unix.RLIMIT_NOFILE)
	l.Processes, _ = limit(unix.RLIMIT_NPROC)
	if pids, err := strconv.ParseInt(line("/sys/fs/cgroup/pids.max"), 10, 64); err == nil && (l.Processes < 0 || pids < l.Processes) {
		l.Processes = pids
	}
	l.Locked, _ = limit(unix.RLIMIT_MEMLOCK)
	entries, _ := os.ReadDir("/sys/class/infiniband")
	for _, e := range entries {
		l.Adapters = append(l.Adapters, e.Name())
	}
}

func limit(which int) (now, most int64) {
	var r unix.Rlimit
	if err := unix.Getrlimit(which, &r); err != nil {
		return -1, -1
	}
	return limitOf(r.Cur), limitOf(r.Max)
}

func limitOf(n uint64) int64 {
	if n > 1<<62 {
		return -1
	}
	return int64(n)
}
