//go:build release

package release

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Two builds for this machine and for Windows. make release-twice builds all of them. The
// tests of pack read the packages.
func TestRelease(t *testing.T) {
	version, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	if err := os.WriteFile(filepath.Join(dirs[1], "muster-mips"), []byte("of an earlier release"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if out, err := exec.Command("./build.sh", dir, "linux/"+runtime.GOARCH, "windows/amd64").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	sums := read(t, dirs[0], "SHA256SUMS")
	if again := read(t, dirs[1], "SHA256SUMS"); !bytes.Equal(sums, again) {
		t.Errorf("two builds differ:\n%s\n%s", sums, again)
	}
	if _, err := os.Stat(filepath.Join(dirs[1], "muster-mips")); err == nil {
		t.Error("a file of an earlier release is still there")
	}
	binary := "muster-" + runtime.GOARCH
	if !strings.Contains(string(sums), "  "+binary+"\n") {
		t.Errorf("the checksums do not list %s:\n%s", binary, sums)
	}
	file, err := elf.Open(filepath.Join(dirs[0], binary))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the binary is not static: it needs %v (%v)", libraries, err)
	}
	want := "v" + strings.TrimSpace(string(version))
	if out, err := exec.Command(filepath.Join(dirs[0], binary), "version").Output(); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("the version is %q (%v), want %s", out, err, want)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = dirs[0]
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("the checksums do not match: %v\n%s", err, out)
	}
	for _, name := range []string{"-1." + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + ".rpm", "-oci.tar", ".cdx.json", "-windows-amd64.zip"} {
		if name = "muster-" + want[1:] + name; !strings.Contains(string(sums), "  "+name+"\n") {
			t.Errorf("the checksums do not list %s:\n%s", name, sums)
		}
	}
	for _, name := range []string{"muster.rb", "package.py"} {
		if !bytes.Contains(read(t, dirs[0], name), []byte(want[1:])) {
			t.Errorf("%s is not for %s", name, want)
		}
	}
	checkImage(t, dirs[0], want)
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return
	}
	deb := filepath.Join(dirs[0], "muster_"+want[1:]+"_"+runtime.GOARCH+".deb")
	out, err := exec.Command("dpkg-deb", "--contents", deb).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := []string{"/bin/muster", "/share/man/man1/muster-run.1.gz", "/share/bash-completion/completions/muster"}
	if _, err := exec.LookPath("cc"); err == nil {
		files = append(files, "/bin/muster-mpicc", "/lib/muster/libmpich.so.12", "/lib/muster/libmpi.so.40", "/lib/muster/libmpi_abi.so.1",
			"/lib/muster/libmuster_core.so", "/lib/muster/include/mpi.h", "/lib/muster/pkgconfig/mpi.pc", "/share/modulefiles/muster")
	}
	tarball := "muster-" + want[1:] + "-linux-" + runtime.GOARCH + ".tar.gz"
	packed, err := exec.Command("tar", "-tzf", filepath.Join(dirs[0], tarball)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, packed)
	}
	for _, file := range files {
		if !strings.Contains(string(out), "./usr"+file) {
			t.Errorf("the package has no %s:\n%s", file, out)
		}
		if !strings.Contains(string(packed), "muster-"+want[1:]+file+"\n") {
			t.Errorf("the tarball has no %s:\n%s", file, packed)
		}
	}
}

// checkImage builds the root directory of the image as the Containerfile describes it, and
// runs its program in it.
func checkImage(t *testing.T, dir, version string) {
	t.Helper()
	definition, err := os.ReadFile("../../Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	root, entry, scratch := t.TempDir(), "", false
	for line := range strings.Lines(strings.ReplaceAll(string(definition), "$TARGETARCH", runtime.GOARCH)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "FROM":
			scratch = words[1] == "scratch"
		case "COPY":
			target := filepath.Join(root, words[2])
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(target, read(t, dir, words[1]), 0o755); err != nil {
				t.Fatal(err)
			}
		case "ENTRYPOINT":
			entry = strings.Trim(words[1], `[]"`)
		}
	}
	if _, err := os.Stat(filepath.Join(root, entry)); err != nil || !scratch || entry == "" {
		t.Fatalf("the image begins with nothing: %v; its program %q: %v", scratch, entry, err)
	}
	if os.Geteuid() != 0 {
		return // only root may change the root directory
	}
	cmd := exec.Command(entry, "version")
	cmd.Err, cmd.Path, cmd.Dir, cmd.Env = nil, entry, "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), version) {
		t.Errorf("the program of the image prints %q (%v), want %s", out, err, version)
	}
}

// TestOtherFilesAreKept gives build.sh directories that are not those of a release. It must
// refuse them before it builds, and change nothing.
func TestOtherFilesAreKept(t *testing.T) {
	for _, name := range []string{"thesis.tex", ".profile", "muster-notes.txt", "muster-amd64/x", "SHA256SUMS.old", "muster-1.txt"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte("0  "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("./build.sh", dir, "linux/"+runtime.GOARCH).CombinedOutput()
		first, _, _ := strings.Cut(name, "/")
		if err == nil || !strings.Contains(string(out), "contains "+first+", which is not part of a release") {
			t.Errorf("a directory with %s: %v\n%s", name, err, out)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "mine" {
			t.Errorf("%s has become %q (%v)", name, got, err)
		}
	}
	if out, err := exec.Command("./build.sh", t.TempDir()).CombinedOutput(); err == nil || !strings.Contains(string(out), "usage:") {
		t.Errorf("without an architecture: %v\n%s", err, out)
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
