package judge

// Packages of Debian, with lists and settings of apt in a folder of our own: the machine need not
// have sources enabled, and nothing is installed.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Source downloads the archive of a source package as its authors published it, to a folder, and
// returns its path.
func Source(ctx context.Context, dir, name string) (archive string, err error) {
	settings, err := update(ctx, dir)
	if err != nil {
		return "", err
	}
	if err := Step(ctx, dir, "apt-get source "+name, "apt-get", append(settings, "source", "--download-only", "--tar-only", name)...); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	archives, err := filepath.Glob(filepath.Join(dir, name+"_*.orig.tar.*"))
	if err != nil || len(archives) == 0 {
		return "", fmt.Errorf("apt-get has left no archive of %s in %s", name, dir)
	}
	return archives[len(archives)-1], nil
}

// Packages downloads binary packages to a folder and unpacks them into its folder root.
func Packages(ctx context.Context, dir string, names ...string) (root string, err error) {
	settings, err := update(ctx, dir)
	if err != nil {
		return "", err
	}
	if err := Step(ctx, dir, "apt-get download", "apt-get", append(append(settings, "download"), names...)...); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	root = filepath.Join(dir, "root")
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("apt-get has left no package %s in %s", name, dir)
		}
		if err := Step(ctx, dir, "unpack "+name, "dpkg", "-x", files[len(files)-1], root); err != nil {
			return "", err
		}
	}
	return root, nil
}

// Dependents returns the packages that depend on another, in the order of their names.
func Dependents(ctx context.Context, dir, name string) ([]string, error) {
	settings, err := update(ctx, dir)
	if err != nil {
		return nil, err
	}
	args := append(settings, "rdepends", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", name)
	out, err := exec.CommandContext(ctx, "apt-cache", args...).Output()
	if err != nil {
		return nil, nil // there is no package of this name
	}
	var names []string
	for _, line := range strings.Split(string(out), "\n") {
		if rest, ok := strings.CutPrefix(line, "  "); ok {
			names = append(names, rest)
		} else if rest, ok := strings.CutPrefix(line, " |"); ok { // or on another
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// update brings the lists of packages up to date, if they are older than a day, and returns the
// arguments with which apt-get uses them.
func update(ctx context.Context, dir string) (settings []string, err error) {
	apt, err := Folder("apt")
	if err != nil {
		return nil, err
	}
	sources, lists, stamp := filepath.Join(apt, "sources.d"), filepath.Join(apt, "lists"), filepath.Join(apt, "updated")
	for _, d := range []string{dir, sources, filepath.Join(lists, "partial")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	settings = []string{
		"-o", "Dir::Etc::sourcelist=/dev/null", "-o", "Dir::Etc::sourceparts=" + sources,
		"-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache=" + apt, "-o", "APT::Sandbox::User=root",
	}
	if info, err := os.Stat(stamp); err == nil && time.Since(info.ModTime()) < 24*time.Hour {
		return settings, nil
	}
	if err := writeSources("/etc/apt", sources); err != nil {
		return nil, err
	}
	if err := Step(ctx, dir, "apt-get update", "apt-get", append(settings, "update")...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return settings, os.WriteFile(stamp, nil, 0o644)
}

var (
	typesLine = regexp.MustCompile(`(?m)^Types:.*$`)
	debLine   = regexp.MustCompile(`(?m)^deb (.*)$`)
)

// writeSources copies the archives that apt knows, as archives of packages and of their sources.
func writeSources(etc, folder string) error {
	files := []string{filepath.Join(etc, "sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		more, err := filepath.Glob(filepath.Join(etc, "sources.list.d", pattern))
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		text = debLine.ReplaceAll(typesLine.ReplaceAll(text, []byte("Types: deb deb-src")), []byte("deb $1\ndeb-src $1"))
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Step runs a command of the preparation; its output is shown if it fails.
func Step(ctx context.Context, dir, what, name string, args ...string) error {
	began := time.Now()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return fmt.Errorf("%s: %w\n%s", what, err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	if took := time.Since(began); took >= time.Second {
		fmt.Fprintf(os.Stderr, "%s: %d s\n", what, int(took.Seconds()))
	}
	return nil
}
