package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"slices"
	"time"
)

// descriptor refers to a blob of the image (OCI Image Format Specification 1.0, "Content Descriptors").
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// layout is an image layout: blobs by the names of their files.
type layout map[string][]byte

const ociType = "application/vnd.oci.image."

func (l layout) add(kind string, data []byte) descriptor {
	sum := digest(data)
	l["blobs/sha256/"+sum[len("sha256:"):]] = data
	return descriptor{MediaType: ociType + kind, Digest: sum, Size: len(data)}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// writeImage writes an image of one layer for each Linux, as a tar file of an image layout. It
// has muster as its program, and the libraries for C programs, for images that copy them.
func (r *release) writeImage() error {
	l := layout{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	var manifests []descriptor
	for _, t := range r.trees {
		if t.os != "linux" {
			continue
		}
		m, err := l.addSystem(r, t)
		if err != nil {
			return err
		}
		manifests = append(manifests, m)
	}
	if len(manifests) == 0 {
		return nil
	}
	list, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ociType + "index.v1+json", "manifests": manifests})
	if err != nil {
		return err
	}
	whole := l.add("index.v1+json", list)
	whole.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	if l["index.json"], err = json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{whole}}); err != nil {
		return err
	}
	var files []file
	for name, data := range l {
		files = append(files, file{name: name, mode: 0o644, data: data})
	}
	slices.SortFunc(files, func(a, b file) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	packed, err := encodeTar(files)
	if err != nil {
		return err
	}
	return r.write("muster-"+r.version+"-oci.tar", packed)
}

// addSystem adds layer, configuration and manifest of one system.
func (l layout) addSystem(r *release, t tree) (descriptor, error) {
	files := append([]file{{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777}}, t.files...)
	unpacked, err := encodeTar(files)
	if err != nil {
		return descriptor{}, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(unpacked); err != nil {
		return descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": t.arch, "os": t.os,
		"config": map[string]any{
			"Entrypoint": []string{"/usr/bin/muster"},
			"Env":        []string{"PATH=/usr/lib/muster/bin:/usr/local/bin:/usr/bin:/bin"},
			"Labels":     map[string]string{"org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": license, "org.opencontainers.image.url": homepage},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(unpacked)}},
	})
	if err != nil {
		return descriptor{}, err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": ociType + "manifest.v1+json",
		"config": l.add("config.v1+json", config),
		"layers": []descriptor{l.add("layer.v1.tar+gzip", b.Bytes())},
	})
	if err != nil {
		return descriptor{}, err
	}
	d := l.add("manifest.v1+json", manifest)
	d.Platform = &platform{Architecture: t.arch, OS: t.os}
	return d, nil
}

func encodeTar(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.unixMode() & 0o777), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		data := f.data
		switch {
		case f.mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		case f.mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname, data = tar.TypeSymlink, string(f.data), nil
		}
		if f.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		h.Size = int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
