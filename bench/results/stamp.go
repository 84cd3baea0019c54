package results

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Stamp records when, from which sources, where and how a table was measured.
type Stamp struct {
	Date     string `json:"date"`     // UTC
	Versions string `json:"versions"` // of Go, Muster and others' libraries
	Command  string `json:"command"`  // that measures this table alone
	// Commit and Machine are those of the run.
	Commit  string `json:"-"`
	Machine string `json:"-"`
}

func (s *Stamp) check() error {
	for name, value := range map[string]string{"date": s.Date, "commit": s.Commit, "machine": s.Machine, "versions": s.Versions, "command": s.Command} {
		if strings.TrimSpace(value) == "" {
			return fmt.Errorf("its stamp has no %s", name)
		}
	}
	if _, err := time.Parse(dateFormat, s.Date); err != nil {
		return fmt.Errorf("the date of its stamp: %w", err)
	}
	return nil
}

const dateFormat = "2006-01-02 15:04:05"

// day is the date without the time.
func (s *Stamp) day() string { return strings.Fields(s.Date)[0] }

// versions lists those of Go, of Muster and of the libraries that took part.
func versions(commit string, libraries []string) string {
	return strings.Join(append([]string{"Go " + strings.TrimPrefix(runtime.Version(), "go"), "Muster " + commit}, libraries...), ", ")
}

// Commit names the commit of the work tree. The generated files themselves do not
// make it dirty: they change while a series of tables is measured.
func Commit(ctx context.Context, root string) (string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short=9", "HEAD")
	if err != nil {
		return "", fmt.Errorf("git does not name the commit of %s: %w", root, err)
	}
	changes, err := git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!"+Folder, ":!"+Page, ":!docs/documents")
	if err != nil {
		return "", fmt.Errorf("git does not show the state of %s: %w", root, err)
	}
	if changes != "" {
		commit += "+dirty"
	}
	return commit, nil
}

// machine describes cores, memory and kernel.
func machine() string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if model := procLine("/proc/cpuinfo", "model name"); model != "" {
		parts[0] += " of " + model
	}
	if kb, err := strconv.ParseFloat(strings.TrimSuffix(procLine("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		parts = append(parts, fmt.Sprintf("%.1f GiB", kb/(1<<20)))
	}
	kernel := runtime.GOOS
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = "Linux " + strings.TrimSpace(string(release))
	}
	return strings.Join(append(parts, kernel), ", ")
}

// procLine returns the value of the first line "name : value" of a file, or "".
func procLine(path, name string) string {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
