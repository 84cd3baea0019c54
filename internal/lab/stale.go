package lab

// Removing namespaces: those of a lab that is taken down, and those of labs whose process
// was killed before it could remove them.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// namespaces is the directory where ip netns keeps one file per namespace.
const namespaces = "/run/netns"

func exists(namespace string) bool {
	_, err := os.Stat(filepath.Join(namespaces, namespace))
	return err == nil
}

func allNamespaces() []string {
	entries, err := os.ReadDir(namespaces)
	if err != nil {
		return nil // no namespace was ever created
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// removeLab removes all namespaces of a lab. The ports are removed before the switch: the
// kernel removes the interfaces of a namespace some time after the namespace, and they
// could collide with a new lab.
func removeLab(name string) error {
	var errs []error
	center := name + "-switch"
	mine := regexp.MustCompile("^" + regexp.QuoteMeta(name) + "-h[0-9]+$")
	for _, namespace := range allNamespaces() {
		if mine.MatchString(namespace) {
			errs = append(errs, removeHost(namespace))
		}
	}
	if exists(center) {
		l := &Lab{name: name}
		links, err := l.switchLinks()
		errs = append(errs, err)
		var batch strings.Builder
		for _, k := range links {
			if strings.HasPrefix(k.Name, "h") {
				fmt.Fprintf(&batch, "link del %s\n", k.Name)
			}
		}
		// Some may already be gone with their hosts.
		_ = command(batch.String(), "ip", "-force", "-n", center, "-batch", "-")
	}
	return errors.Join(append(errs, removeHost(center))...)
}

// removeHost removes a namespace, the processes in it and its files.
func removeHost(host string) error {
	if err := os.RemoveAll(filepath.Join(hostFiles, host)); err != nil {
		return fmt.Errorf("lab: remove the files of %s: %w", host, err)
	}
	if !exists(host) {
		return nil
	}
	killed := killAll(host)
	err := command("", "ip", "netns", "del", host)
	if !exists(host) {
		return killed // removed by this process, or by another one that found it stale
	}
	return errors.Join(killed, err)
}

// killAll kills all processes in a namespace. A process may have just started another one,
// so it repeats until there is none.
func killAll(host string) error {
	var pids []int
	for range 400 {
		pids = slices.DeleteFunc(processes(host), func(pid int) bool { return pid == os.Getpid() })
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			kill(pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("lab: processes %v on %s cannot be killed: check their state with ps", pids, host)
}

func processes(host string) []int {
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	text, err := exec.CommandContext(ctx, "ip", "netns", "pids", host).Output()
	if err != nil {
		return nil
	}
	var pids []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// RemoveStale removes the labs of processes that were killed.
func RemoveStale() { removeStale(defaultPrefix) }

// removeStale removes the namespaces of labs with this prefix whose process is gone. It
// ignores errors; the next call tries again.
func removeStale(prefix string) {
	pattern := regexp.MustCompile("^" + prefix + "([0-9]+)[a-z]-(switch|h[0-9]+)$")
	for _, namespace := range allNamespaces() {
		match := pattern.FindStringSubmatch(namespace)
		if match == nil {
			continue
		}
		pid, err := strconv.Atoi(match[1])
		if err != nil || !gone(pid) {
			continue
		}
		_ = removeHost(namespace)
	}
}
