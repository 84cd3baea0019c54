package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// packSmall packs a release of small trees whose muster is the binary of this test.
func packSmall(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, system := range []string{"linux-amd64", "linux-arm64", "darwin-arm64", "windows-amd64"} {
		root := filepath.Join(dir, "tree-"+system, "usr")
		for name, data := range map[string][]byte{"bin/muster": binary, "share/man/man1/muster.1.gz": []byte("manual"), "lib/muster/libmpich.so.12": []byte("odd")} {
			if name == "bin/muster" && strings.HasPrefix(system, "windows") {
				name += ".exe"
			}
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("libmpich.so.12", filepath.Join(root, "lib", "muster", "libmpich.so")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "muster-1.2.3-"+system+".tar.gz"), []byte(system), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&release{dir: dir, version: "1.2.3"}).pack(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("releases are built on Linux")
	}
	dir := packSmall(t)
	t.Run("rpm", func(t *testing.T) { checkRPM(t, dir) })
	t.Run("image", func(t *testing.T) { checkImage(t, dir) })
	t.Run("zip", func(t *testing.T) { checkZip(t, dir) })
	t.Run("materials", func(t *testing.T) { checkMaterials(t, dir) })
	t.Run("recipes", func(t *testing.T) { checkRecipes(t, dir) })
	t.Run("again", func(t *testing.T) {
		before := map[string][]byte{}
		for _, name := range []string{"muster-1.2.3-1.x86_64.rpm", "muster-1.2.3-1.aarch64.rpm", "muster-1.2.3-oci.tar", "muster-1.2.3.cdx.json", "muster.rb", "package.py"} {
			before[name] = read(t, dir, name)
		}
		if err := (&release{dir: dir, version: "1.2.3"}).pack(); err != nil {
			t.Fatal(err)
		}
		for name, data := range before {
			if !bytes.Equal(data, read(t, dir, name)) {
				t.Errorf("%s differs when it is made again", name)
			}
		}
	})
}

// checkRPM gives the package to rpm, which is the judge of the format.
func checkRPM(t *testing.T, dir string) {
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("rpm is not installed (Debian package rpm)")
	}
	root := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("rpm", slices.Concat([]string{"--root", root, "--nodeps"}, args)...).CombinedOutput()
		if err != nil {
			t.Fatalf("rpm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	pkg := filepath.Join(dir, "muster-1.2.3-1.x86_64.rpm")
	query := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("rpm", append(args, pkg)...).CombinedOutput()
		if err != nil {
			t.Fatalf("rpm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := query("-K", "--nosignature"); !strings.Contains(out, "digests OK") {
		t.Errorf("rpm -K: %s", out)
	}
	if out := query("-qlp"); out != "/usr/bin/muster\n/usr/lib/muster\n/usr/lib/muster/libmpich.so\n/usr/lib/muster/libmpich.so.12\n/usr/share/man/man1/muster.1.gz\n" {
		t.Errorf("rpm -qlp:\n%s", out)
	}
	if out := query("-qip"); !strings.Contains(out, "Version     : 1.2.3") || !strings.Contains(out, license) {
		t.Errorf("rpm -qip:\n%s", out)
	}
	if os.Geteuid() != 0 {
		t.Skip("installing below another root needs root")
	}
	run("--ignorearch", "-i", pkg)
	if got := read(t, root, "usr/lib/muster/libmpich.so"); string(got) != "odd" {
		t.Errorf("the link leads to %q", got)
	}
	if out := run("-V", "muster"); out != "" {
		t.Errorf("rpm -V after installing:\n%s", out)
	}
}

// checkImage follows the image from its index to the files, and compares every digest.
func checkImage(t *testing.T, dir string) {
	blobs := map[string][]byte{}
	packed := tar.NewReader(bytes.NewReader(read(t, dir, "muster-1.2.3-oci.tar")))
	for {
		h, err := packed.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if blobs[h.Name], err = io.ReadAll(packed); err != nil {
			t.Fatal(err)
		}
	}
	if string(blobs["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %q", blobs["oci-layout"])
	}
	type list struct{ Manifests []descriptor }
	decode := func(data []byte, to any) {
		t.Helper()
		if err := json.Unmarshal(data, to); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
	}
	blob := func(d descriptor) []byte {
		t.Helper()
		data := blobs["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if digest(data) != d.Digest || len(data) != d.Size {
			t.Fatalf("%s is not in the image, or has another digest or size", d.Digest)
		}
		return data
	}
	var index, systems list
	decode(blobs["index.json"], &index)
	decode(blob(index.Manifests[0]), &systems)
	if len(systems.Manifests) != 2 {
		t.Fatalf("the image is for %d systems, want linux-amd64 and linux-arm64", len(systems.Manifests))
	}
	for _, d := range systems.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		var config struct {
			Architecture string
			RootFS       struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		decode(blob(d), &manifest)
		decode(blob(manifest.Config), &config)
		z, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0])))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(z)
		if err != nil || digest(layer) != config.RootFS.DiffIDs[0] || config.Architecture != d.Platform.Architecture {
			t.Errorf("the layer for %s has digest %s (%v), want %s", d.Platform.Architecture, digest(layer), err, config.RootFS.DiffIDs)
		}
		var names []string
		for files := tar.NewReader(bytes.NewReader(layer)); ; {
			h, err := files.Next()
			if err != nil {
				break
			}
			names = append(names, h.Name)
			if h.Name == "usr/bin/muster" && h.FileInfo().Mode() != 0o755 {
				t.Errorf("the mode of muster is %v", h.FileInfo().Mode())
			}
		}
		for _, want := range []string{"tmp/", "usr/bin/muster", "usr/lib/muster/libmpich.so"} {
			if !slices.Contains(names, want) {
				t.Errorf("the layer has no %s: %v", want, names)
			}
		}
	}
}

func checkZip(t *testing.T, dir string) {
	z, err := zip.OpenReader(filepath.Join(dir, "muster-1.2.3-windows-amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if f, err := z.Open("muster-1.2.3/bin/muster.exe"); err != nil {
		t.Error(err)
	} else if _, err := io.Copy(io.Discard, f); err != nil {
		t.Error(err)
	}
}

func checkMaterials(t *testing.T, dir string) {
	var list struct {
		Format     string `json:"bomFormat"`
		Components []component
		Needs      []dependency `json:"dependencies"`
	}
	if err := json.Unmarshal(read(t, dir, "muster-1.2.3.cdx.json"), &list); err != nil {
		t.Fatal(err)
	}
	want := "pkg:golang/stdlib@v" + strings.TrimPrefix(runtime.Version(), "go")
	if list.Format != "CycloneDX" || !slices.ContainsFunc(list.Components, func(c component) bool { return c.PURL == want }) {
		t.Errorf("the list has no %s: %+v", want, list)
	}
	for _, n := range list.Needs {
		for _, ref := range append(n.On, n.Ref) {
			if !slices.ContainsFunc(list.Components, func(c component) bool { return c.Ref == ref }) {
				t.Errorf("%s is not a component", ref)
			}
		}
	}
}

func checkRecipes(t *testing.T, dir string) {
	formula, recipe := string(read(t, dir, "muster.rb")), string(read(t, dir, "package.py"))
	for _, system := range []string{"linux-amd64", "linux-arm64", "darwin-arm64"} {
		sum := digest([]byte(system))[len("sha256:"):] // of what is in the tarball here
		if url := "muster-1.2.3-" + system + ".tar.gz\"\n      sha256 \"" + sum; !strings.Contains(formula, url) {
			t.Errorf("the formula has no %s:\n%s", url, formula)
		}
		if !strings.Contains(recipe, `"`+system+`": "`+sum+`"`) {
			t.Errorf("the recipe has no sum for %s:\n%s", system, recipe)
		}
	}
	for program, args := range map[string][]string{"ruby": {"-c", "muster.rb"}, "python3": {"-m", "py_compile", "package.py"}} {
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s %v: %v\n%s", program, args, err, out)
		}
	}
}
