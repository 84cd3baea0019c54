package main

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"strings"
)

// writeZip packs the files of a tree, as the tarballs do.
func (r *release) writeZip(t tree) error {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range t.files {
		name, below := strings.CutPrefix(f.name, "usr/")
		if !below || !f.mode.IsRegular() {
			continue
		}
		header := &zip.FileHeader{Name: "muster-" + r.version + "/" + name, Method: zip.Deflate}
		header.SetMode(f.mode & fs.ModePerm)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return r.write("muster-"+r.version+"-"+t.os+"-"+t.arch+".zip", b.Bytes())
}
