package lab

// The functions follow the life cycle of a lab: Usable, Create, accessors, Remove. links.go and
// rate.go change the cables, names.go finds labs, status.go reports their state, stale.go
// removes the labs of killed processes.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config describes a lab. The zero value is two hosts on one network.
type Config struct {
	// Hosts is the number of hosts, 1 to 250. Default: 2.
	Hosts int
	// Rails is the number of networks that connect all hosts, 1 to 16. Default: 1.
	Rails int
	// MTU is the MTU of the links, 576 to 65535. Default: 1500.
	MTU int
	// Rate is the speed of every cable in each direction, such as "1gbit". Default: as
	// fast as the machine copies.
	Rate string
	// Queue is the queue of a switch port in bytes, if Rate is set, at least 66,000: with
	// segmentation offload, a packet has up to 64 KB. What does not fit is lost. Default:
	// 8 ms at the rate.
	Queue int64
	// Loss is the probability, 0 to 1, that a packet is lost. Default: 0.
	Loss float64
	// Name creates a lab that outlives this process and that Find can open: a small
	// letter, then small letters and digits, at most 16. Default: none; the lab is stale
	// when this process has exited.
	Name string
	// Prefix is the start of the host names, at most 20 small letters, followed by the
	// name, or by the ID of this process and a letter. Default: "muster". Find finds
	// only labs with the default.
	Prefix string
}

// Lab is a group of hosts. Its methods may be called by several goroutines.
type Lab struct {
	cfg   Config
	name  string // start of the names of its namespaces
	hosts []string
}

const (
	defaultPrefix = "muster"
	maxHosts      = 250
	maxRails      = 16
	minQueue      = 66_000
	// commandTime limits a system command, which normally takes milliseconds.
	commandTime = 30 * time.Second
	// hostFiles is the directory of the per-namespace files of ip netns exec.
	hostFiles = "/etc/netns"
)

// Usable returns why no lab can be created here, or nil.
func Usable() error {
	if err := tool("ip", "iproute2"); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return errors.New("lab: this system has no network namespaces; use Linux")
	}
	const netAdmin, sysAdmin = 1 << 12, 1 << 21
	for line := range strings.Lines(string(status)) {
		mask, found := strings.CutPrefix(line, "CapEff:")
		if !found {
			continue
		}
		caps, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err == nil && caps&netAdmin != 0 && caps&sysAdmin != 0 {
			return tryNamespace()
		}
	}
	return errors.New("lab: creating network namespaces needs root (the capabilities NET_ADMIN and SYS_ADMIN)")
}

// tryNamespace returns why no namespace with a cable can be created: containers and small
// kernels may refuse it to root, too.
func tryNamespace() error {
	name := fmt.Sprintf("probe-%d-%x", os.Getpid(), time.Now().UnixNano())
	err := command("", "ip", "netns", "add", name)
	if err == nil {
		err = errors.Join(command("", "ip", "-n", name, "link", "add", "name", "probe0", "type", "veth", "peer", "name", "probe1"),
			command("", "ip", "netns", "del", name))
	}
	if err != nil {
		return fmt.Errorf("lab: this machine lets root create no network namespaces: %w", err)
	}
	return nil
}

func tool(name, debianPackage string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("lab: there is no %s command here; install it (Debian package %s)", name, debianPackage)
	}
	return nil
}

func (c *Config) complete() error {
	if c.Hosts == 0 {
		c.Hosts = 2
	}
	if c.Rails == 0 {
		c.Rails = 1
	}
	if c.MTU == 0 {
		c.MTU = 1500
	}
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	switch {
	case c.Hosts < 1 || c.Hosts > maxHosts:
		return fmt.Errorf("lab: %d hosts: use 1 to %d", c.Hosts, maxHosts)
	case c.Rails < 1 || c.Rails > maxRails:
		return fmt.Errorf("lab: %d rails: use 1 to %d", c.Rails, maxRails)
	case c.Queue != 0 && c.Queue < minQueue:
		return fmt.Errorf("lab: queue of %d bytes: use at least %d", c.Queue, minQueue)
	case c.MTU < 576 || c.MTU > 65535:
		return fmt.Errorf("lab: MTU %d: use 576 to 65535", c.MTU)
	case len(c.Prefix) > 20 || strings.Trim(c.Prefix, "abcdefghijklmnopqrstuvwxyz") != "":
		return fmt.Errorf("lab: prefix %q: use at most 20 small letters", c.Prefix)
	}
	if c.Rate != "" {
		if _, err := ParseRate(c.Rate); err != nil {
			return err
		}
	}
	if err := checkLoss(c.Loss); err != nil {
		return err
	}
	return checkName(c.Name)
}

// Create creates the hosts and connects them. The caller must call Remove.
func Create(cfg Config) (*Lab, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := Usable(); err != nil {
		return nil, err
	}
	removeStale(cfg.Prefix)
	permitCongestion()
	l := &Lab{cfg: cfg}
	if err := l.claimName(); err != nil {
		return nil, err
	}
	l.nameHosts()
	if err := l.build(); err != nil {
		return nil, errors.Join(err, l.Remove())
	}
	return l, nil
}

// build creates a bridge per rail in the switch namespace, and for each host a namespace
// with one interface per rail, whose other end is a port of the bridge.
func (l *Lab) build() error {
	var ports strings.Builder
	for r := range l.cfg.Rails {
		fmt.Fprintf(&ports, "link add %s type bridge forward_delay 0 mcast_snooping 0\n", bridge(r))
		fmt.Fprintf(&ports, "link set %s mtu %d up\n", bridge(r), l.cfg.MTU)
	}
	for _, host := range l.hosts {
		if err := command("", "ip", "netns", "add", host); err != nil {
			return err
		}
		for r := range l.cfg.Rails {
			port := l.port(host, r)
			fmt.Fprintf(&ports, "link add %s mtu %d type veth peer name %s netns %s mtu %d\n", port, l.cfg.MTU, device(r), host, l.cfg.MTU)
			fmt.Fprintf(&ports, "link set %s master %s up\n", port, bridge(r))
		}
	}
	if err := l.ip(l.switchName(), ports.String()); err != nil {
		return err
	}
	for _, host := range l.hosts {
		if err := l.equip(host); err != nil {
			return err
		}
	}
	if err := l.awaitCarriers(); err != nil {
		return err
	}
	return l.ip(l.switchName(), "link set "+bridge(0)+" alias "+finished+"\n")
}

// finished marks a complete lab, so that Find can detect one whose creation was killed.
const finished = "finished"

// equip sets the addresses of a host, the names of all hosts, and the speed and loss of its
// cables. With several rails a host answers ARP for an address only on the rail of that
// address; otherwise the rails would not be separate.
func (l *Lab) equip(host string) error {
	var batch strings.Builder
	batch.WriteString("link set lo up\n")
	for r := range l.cfg.Rails {
		fmt.Fprintf(&batch, "addr add %s/24 dev %s\nlink set %s up\n", l.Addr(host, r), device(r), device(r))
	}
	if err := l.ip(host, batch.String()); err != nil {
		return err
	}
	if l.cfg.Rails > 1 {
		const script = "cd /proc/sys/net/ipv4/conf/all && echo 1 >arp_ignore && echo 2 >arp_announce && echo 0 >rp_filter"
		if err := command("", "ip", "netns", "exec", host, "sh", "-c", script); err != nil {
			return err
		}
	}
	setCongestion(host)
	if err := l.writeNames(host); err != nil {
		return err
	}
	if l.cfg.Rate != "" {
		if err := l.Rate(host, EveryRail, l.cfg.Rate); err != nil {
			return err
		}
	}
	if l.cfg.Loss > 0 {
		return l.Loss(host, EveryRail, l.cfg.Loss)
	}
	return nil
}

// writeNames makes a host resolve the names of all hosts, and its own name to an address
// that the others can use.
func (l *Lab) writeNames(host string) error {
	names := "127.0.0.1 localhost\n::1 localhost\n"
	if own, err := os.Hostname(); err == nil {
		names += l.Addr(host, 0) + " " + own + "\n"
	}
	for _, other := range l.hosts {
		names += l.Addr(other, 0) + " " + other + " " + l.short(other) + "\n"
	}
	dir := filepath.Join(hostFiles, host)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("lab: write the host names for %s: %w", host, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte(names), 0o644); err != nil {
		return fmt.Errorf("lab: write the host names for %s: %w", host, err)
	}
	return nil
}

// Hosts returns the names of the hosts. They are the names of their namespaces, for Rsh
// and for name resolution on the hosts.
func (l *Lab) Hosts() []string { return slices.Clone(l.hosts) }

// Rails returns the number of rails.
func (l *Lab) Rails() int { return l.cfg.Rails }

// Addr returns the address of a host on a rail, numbered from 0. It panics if the host or
// rail does not exist, because that is a programming error.
func (l *Lab) Addr(host string, rail int) string {
	h := slices.Index(l.hosts, host)
	if h < 0 || rail < 0 || rail >= l.cfg.Rails {
		panic(fmt.Sprintf("lab: no rail %d of host %q: this lab has %s with %d rails each", rail, host, strings.Join(l.hosts, ", "), l.cfg.Rails))
	}
	return fmt.Sprintf("10.61.%d.%d", rail, h+1)
}

// Device returns the name of a host's interface on a rail.
func (l *Lab) Device(rail int) string { return device(rail) }

func device(rail int) string { return "eth" + strconv.Itoa(rail) }

// bridge returns the name of a rail's bridge.
func bridge(rail int) string { return "rail" + strconv.Itoa(rail) }

// port returns the name of the switch's end of a host's cable.
func (l *Lab) port(host string, rail int) string {
	return "h" + strconv.Itoa(slices.Index(l.hosts, host)+1) + "r" + strconv.Itoa(rail)
}

// Rsh returns the command template that runs a command on a host, for muster run --rsh.
func (l *Lab) Rsh() string { return "ip netns exec {host}" }

// Command returns a command that runs on a host. Its process becomes the program itself,
// so signals reach it.
func (l *Lab) Command(ctx context.Context, host, prog string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", host, prog}, args...)...)
}

// Remove kills the remaining processes on the hosts and removes everything that Create has
// created. It may be called again.
func (l *Lab) Remove() error { return removeLab(l.name) }

// ip runs a list of ip commands in a namespace.
func (l *Lab) ip(namespace, batch string) error {
	return command(batch, "ip", "-n", namespace, "-batch", "-")
}

// command runs a system command. The error includes its output.
func command(input string, name string, args ...string) error {
	_, err := query(input, name, args...)
	return err
}

// query runs a system command and returns its output.
func query(input string, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var output strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &output
	answer, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("lab: %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(output.String()+string(answer)))
	}
	return answer, nil
}
