package lab

// In the order of a lab's life: Usable, Up, its facts, Down. links.go changes
// the links meanwhile, stale.go removes what dead processes have left.

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

// Config says what to build. The zero value is two hosts on one network.
type Config struct {
	// Hosts is how many there are, 1 to 250. Default: 2.
	Hosts int
	// Rails is how many networks connect every host with all others. Default: 1.
	Rails int
	// MTU is the largest packet of the links, 576 to 65535. Default: 1500.
	MTU int
	// Prefix begins the names of the hosts, at most 20 letters. Default:
	// "muster". After it come the number of this process and a letter.
	Prefix string
}

// Lab is a number of hosts. Its methods may be called by several goroutines.
type Lab struct {
	cfg   Config
	name  string // what the names of the namespaces begin with
	hosts []string
}

const (
	defaultPrefix = "muster"
	maxHosts      = 250
	maxRails      = 16
	// commandTime is what one command of the system gets: they take milliseconds.
	commandTime = 30 * time.Second
	// hostFiles is where ip netns exec looks for files that a namespace has for
	// itself.
	hostFiles = "/etc/netns"
)

// Usable tells why no lab can be had here, nil if one can.
func Usable() error {
	if _, err := exec.LookPath("ip"); err != nil {
		return errors.New("lab: there is no ip command (Debian package iproute2)")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return errors.New("lab: this system has no network namespaces, they are Linux's")
	}
	const netAdmin, sysAdmin = 1 << 12, 1 << 21
	for line := range strings.Lines(string(status)) {
		mask, found := strings.CutPrefix(line, "CapEff:")
		if !found {
			continue
		}
		caps, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err == nil && caps&netAdmin != 0 && caps&sysAdmin != 0 {
			return nil
		}
	}
	return errors.New("lab: making network namespaces needs root (the capabilities NET_ADMIN and SYS_ADMIN)")
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
	case c.MTU < 576 || c.MTU > 65535:
		return fmt.Errorf("lab: MTU %d: use 576 to 65535", c.MTU)
	case len(c.Prefix) > 20 || strings.Trim(c.Prefix, "abcdefghijklmnopqrstuvwxyz") != "":
		return fmt.Errorf("lab: prefix %q: use at most 20 small letters", c.Prefix)
	}
	return nil
}

// Up makes the hosts and connects them. The caller calls Down.
func Up(cfg Config) (*Lab, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := Usable(); err != nil {
		return nil, err
	}
	removeStale(cfg.Prefix)
	l := &Lab{cfg: cfg}
	if err := l.claimName(); err != nil {
		return nil, err
	}
	for h := range cfg.Hosts {
		l.hosts = append(l.hosts, l.name+"-h"+strconv.Itoa(h+1))
	}
	if err := l.build(); err != nil {
		return nil, errors.Join(err, l.Down())
	}
	return l, nil
}

// claimName makes the namespace of the switch under a name that is free: a
// process can have several labs.
func (l *Lab) claimName() error {
	var err error
	for letter := 'a'; letter <= 'z'; letter++ {
		l.name = l.cfg.Prefix + strconv.Itoa(os.Getpid()) + string(letter)
		if err = command("", "ip", "netns", "add", l.switchName()); err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), "File exists") {
			break
		}
	}
	return err
}

func (l *Lab) switchName() string { return l.name + "-switch" }

// build makes a bridge per rail in the switch, and for each host a namespace
// with one interface per rail, the other end of which is a port of the bridge.
func (l *Lab) build() error {
	var ports strings.Builder
	for r := range l.cfg.Rails {
		fmt.Fprintf(&ports, "link add rail%d type bridge forward_delay 0 mcast_snooping 0\n", r)
		fmt.Fprintf(&ports, "link set rail%d mtu %d up\n", r, l.cfg.MTU)
	}
	for _, host := range l.hosts {
		if err := command("", "ip", "netns", "add", host); err != nil {
			return err
		}
		for r := range l.cfg.Rails {
			port := l.port(host, r)
			fmt.Fprintf(&ports, "link add %s mtu %d type veth peer name %s netns %s mtu %d\n", port, l.cfg.MTU, device(r), host, l.cfg.MTU)
			fmt.Fprintf(&ports, "link set %s master rail%d up\n", port, r)
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
	return nil
}

// equip gives a host its addresses and the names of all hosts. With several
// rails a host answers for an address only on the rail that it belongs to, or
// else the rails would not be separate.
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
	names := "127.0.0.1 localhost\n::1 localhost\n"
	if own, err := os.Hostname(); err == nil {
		names += l.Addr(host, 0) + " " + own + "\n"
	}
	for _, other := range l.hosts {
		names += l.Addr(other, 0) + " " + other + "\n"
	}
	dir := filepath.Join(hostFiles, host)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("lab: the names that %s resolves: %w", host, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte(names), 0o644); err != nil {
		return fmt.Errorf("lab: the names that %s resolves: %w", host, err)
	}
	return nil
}

// Hosts are the names of the hosts. They are names of namespaces, which Rsh
// and the hosts themselves understand.
func (l *Lab) Hosts() []string { return slices.Clone(l.hosts) }

// Addr is the address of a host on a rail, counted from 0. It panics if there
// is no such host or rail: that is a mistake in the program.
func (l *Lab) Addr(host string, rail int) string {
	h := slices.Index(l.hosts, host)
	if h < 0 || rail < 0 || rail >= l.cfg.Rails {
		panic(fmt.Sprintf("lab: there is no rail %d of host %q: this lab has %s with %d rails each", rail, host, strings.Join(l.hosts, ", "), l.cfg.Rails))
	}
	return fmt.Sprintf("10.61.%d.%d", rail, h+1)
}

// Device is the name of a host's interface on a rail.
func (l *Lab) Device(rail int) string { return device(rail) }

func device(rail int) string { return "eth" + strconv.Itoa(rail) }

// Rsh is the command template that runs something on a host, as muster run
// --rsh takes it.
func (l *Lab) Rsh() string { return "ip netns exec {host}" }

// Command prepares a command that runs on a host. The process that it starts
// becomes the program itself, so signals reach it.
func (l *Lab) Command(ctx context.Context, host, prog string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", host, prog}, args...)...)
}

// Down kills the processes that are left on the hosts and removes all that Up
// has made. It can be called again.
func (l *Lab) Down() error {
	// The ports go first: what a namespace holds is removed some time after it,
	// and a new lab might meet it.
	var batch strings.Builder
	for _, host := range l.hosts {
		for r := range l.cfg.Rails {
			fmt.Fprintf(&batch, "link del %s\n", l.port(host, r))
		}
	}
	var errs []error
	for _, host := range l.hosts {
		errs = append(errs, removeHost(host))
	}
	if exists(l.switchName()) {
		// A lab that was never finished lacks some of them.
		_ = command(batch.String(), "ip", "-force", "-n", l.switchName(), "-batch", "-")
	}
	return errors.Join(append(errs, removeHost(l.switchName()))...)
}

// ip runs a list of ip commands in a namespace.
func (l *Lab) ip(namespace, batch string) error {
	return command(batch, "ip", "-n", namespace, "-batch", "-")
}

// command runs a command of the system; what it says becomes the error.
func command(input string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	if text, err := cmd.CombinedOutput(); err != nil {
		said := strings.TrimSpace(string(text))
		return fmt.Errorf("lab: %s %s: %w: %s", name, strings.Join(args, " "), err, said)
	}
	return nil
}
