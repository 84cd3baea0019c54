package lab

// Removing namespaces: those of a lab that goes down, and those of labs whose
// process has died without taking them down.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// namespaces is where ip netns keeps them, one file each.
const namespaces = "/run/netns"

func exists(namespace string) bool {
	_, err := os.Stat(filepath.Join(namespaces, namespace))
	return err == nil
}

// removeHost removes a namespace, the processes in it and its files.
func removeHost(host string) error {
	if err := os.RemoveAll(filepath.Join(hostFiles, host)); err != nil {
		return fmt.Errorf("lab: the files of %s: %w", host, err)
	}
	if !exists(host) {
		return nil
	}
	killAll(host)
	err := command("", "ip", "netns", "del", host)
	if !exists(host) {
		return nil // by us, or by another who saw that it was stale
	}
	return err
}

// killAll kills what runs in a namespace. A process may have just started
// another one, so it looks again until there is none.
func killAll(host string) {
	for range 100 {
		pids := processes(host)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			if pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
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

// removeStale removes the namespaces of labs with this prefix whose process is
// gone. Errors are left to the next one who tries.
func removeStale(prefix string) {
	entries, err := os.ReadDir(namespaces)
	if err != nil {
		return
	}
	pattern := regexp.MustCompile("^" + prefix + "([0-9]+)[a-z]-(switch|h[0-9]+)$")
	for _, e := range entries {
		match := pattern.FindStringSubmatch(e.Name())
		if match == nil {
			continue
		}
		pid, err := strconv.Atoi(match[1])
		if err != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		_ = removeHost(e.Name())
	}
}
