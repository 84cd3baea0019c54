package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A package of version 4 is a lead, a header of checksums, a header that describes the package
// and its files, and a compressed cpio archive of the files (rpm.org, "RPM V4 package format").

// Types of values in a header.
const (
	rpmInt16   = 3
	rpmInt32   = 4
	rpmString  = 6
	rpmBytes   = 7
	rpmStrings = 8
	rpmI18N    = 9
)

// rpmTag is one entry of a header.
type rpmTag struct {
	tag, kind, count int
	data             []byte
}

func numbers[T uint16 | uint32](tag int, values ...T) rpmTag {
	t := rpmTag{tag: tag, kind: rpmInt32, count: len(values)}
	for _, v := range values {
		if v16, short := any(v).(uint16); short {
			t.kind, t.data = rpmInt16, binary.BigEndian.AppendUint16(t.data, v16)
		} else {
			t.data = binary.BigEndian.AppendUint32(t.data, uint32(v))
		}
	}
	return t
}

func text(tag, kind int, values ...string) rpmTag {
	return rpmTag{tag: tag, kind: kind, count: len(values), data: []byte(strings.Join(values, "\x00") + "\x00")}
}

// encodeRPMHeader writes the entries, of which the first is the region: it says which entries the
// checksums cover, and its data at the end is an entry that points back to it.
func encodeRPMHeader(region int, tags []rpmTag) []byte {
	slices.SortFunc(tags, func(a, b rpmTag) int { return cmp.Compare(a.tag, b.tag) })
	var index, store []byte
	entry := func(to []byte, tag, kind, offset, count int) []byte {
		for _, v := range []int{tag, kind, offset, count} {
			to = binary.BigEndian.AppendUint32(to, uint32(v))
		}
		return to
	}
	for _, t := range tags {
		if align := map[int]int{rpmInt16: 2, rpmInt32: 4}[t.kind]; align > 0 {
			store = append(store, make([]byte, -len(store)&(align-1))...)
		}
		index = entry(index, t.tag, t.kind, len(store), t.count)
		store = append(store, t.data...)
	}
	first := entry(nil, region, rpmBytes, len(store), 16)
	store = entry(store, region, rpmBytes, -16*(len(tags)+1), 16)
	head := []byte{0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0}
	head = binary.BigEndian.AppendUint32(head, uint32(len(tags)+1))
	head = binary.BigEndian.AppendUint32(head, uint32(len(store)))
	return slices.Concat(head, first, index, store)
}

// encodeCPIO writes the files as an archive of format newc.
func encodeCPIO(files []file) []byte {
	var b bytes.Buffer
	add := func(inode int, name string, mode uint32, data []byte) {
		links := 1
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
			inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
		b.Write(make([]byte, -b.Len()&3))
		b.Write(data)
		b.Write(make([]byte, -b.Len()&3))
	}
	for i, f := range files {
		add(i+1, "./"+f.name, f.unixMode(), f.data)
	}
	add(0, "TRAILER!!!", 0, nil)
	return b.Bytes()
}

func (f file) unixMode() uint32 {
	switch {
	case f.mode.IsDir():
		return 0o040000 | uint32(f.mode.Perm())
	case f.mode&fs.ModeSymlink != 0:
		return 0o120777
	}
	return 0o100000 | uint32(f.mode.Perm())
}

// describeFiles returns the entries for the files, which are arrays of equal length.
func describeFiles(files []file) []rpmTag {
	var sizes, times, flags, inodes, folders []uint32
	var modes, rdevs []uint16
	var digests, links, owners, names, langs, dirs []string
	total := uint32(0)
	for i, f := range files {
		digest, link := "", ""
		switch {
		case f.mode.IsRegular():
			sum := sha256.Sum256(f.data)
			digest = hex.EncodeToString(sum[:])
		case f.mode&fs.ModeSymlink != 0:
			link = string(f.data)
		}
		dir := "/" + path.Dir(f.name) + "/"
		at := slices.Index(dirs, dir)
		if at < 0 {
			at, dirs = len(dirs), append(dirs, dir)
		}
		total += uint32(len(f.data))
		sizes, times, flags = append(sizes, uint32(len(f.data))), append(times, 0), append(flags, 0)
		inodes, folders = append(inodes, uint32(i+1)), append(folders, uint32(at))
		modes, rdevs = append(modes, uint16(f.unixMode())), append(rdevs, 0)
		digests, links, owners = append(digests, digest), append(links, link), append(owners, "root")
		names, langs = append(names, path.Base(f.name)), append(langs, "")
	}
	verify := slices.Repeat([]uint32{0xffffffff}, len(files))
	return []rpmTag{
		numbers(1009, total), numbers(1028, sizes...), numbers(1030, modes...), numbers(1033, rdevs...),
		numbers(1034, times...), text(1035, rpmStrings, digests...), text(1036, rpmStrings, links...),
		numbers(1037, flags...), text(1039, rpmStrings, owners...), text(1040, rpmStrings, owners...),
		numbers(1045, verify...), numbers(1095, slices.Repeat([]uint32{1}, len(files))...), numbers(1096, inodes...),
		text(1097, rpmStrings, langs...), numbers(1116, folders...), text(1117, rpmStrings, names...),
		text(1118, rpmStrings, dirs...), numbers[uint32](5011, 8), // SHA-256
	}
}

// describePackage returns the entries for the package itself.
func (r *release) describePackage(arch string, libraries bool) []rpmTag {
	const equal, rpmlib = 8, 1<<24 | 2 | 8 // sense of a dependency
	needs := []string{"rpmlib(CompressedFileNames)", "rpmlib(FileDigests)", "rpmlib(PayloadFilesHavePrefix)"}
	versions := []string{"3.0.4-1", "4.6.0-1", "4.0-1"}
	senses := []uint32{rpmlib, rpmlib, rpmlib}
	if libraries {
		needs, versions, senses = append(needs, "libc.so.6(GLIBC_2.34)(64bit)"), append(versions, ""), append(senses, 0)
	}
	return []rpmTag{
		text(100, rpmStrings, "C"), text(1000, rpmString, "muster"), text(1001, rpmString, r.version), text(1002, rpmString, "1"),
		text(1004, rpmI18N, summary), text(1005, rpmI18N, summary), numbers[uint32](1006, 0), text(1014, rpmString, license),
		text(1016, rpmI18N, "Development/Libraries"), text(1020, rpmString, homepage), text(1021, rpmString, "linux"), text(1022, rpmString, arch),
		text(1044, rpmString, "muster-"+r.version+"-1.src.rpm"), // without one it would be a source package
		text(1047, rpmStrings, "muster"), numbers[uint32](1112, equal), text(1113, rpmStrings, r.version+"-1"),
		numbers(1048, senses...), text(1049, rpmStrings, needs...), text(1050, rpmStrings, versions...),
		text(1064, rpmString, "4.18.0"), text(1124, rpmString, "cpio"), text(1125, rpmString, "gzip"), text(1126, rpmString, "9"),
	}
}

func (r *release) writeRPM(t tree) error {
	arch, number := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[t.arch], map[string]byte{"amd64": 1, "arm64": 19}[t.arch]
	if arch == "" {
		return fmt.Errorf("no name of %s in .rpm packages is known", t.arch)
	}
	var files []file
	libraries := false
	for _, f := range t.files {
		if strings.HasSuffix(f.name, "/libmuster_core.so") {
			libraries = true
		}
		if !f.mode.IsDir() || strings.HasPrefix(f.name+"/", "usr/lib/muster/") { // others belong to the system
			files = append(files, f)
		}
	}
	archive := encodeCPIO(files)
	var payload bytes.Buffer
	z, err := gzip.NewWriterLevel(&payload, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(archive); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	sum := sha256.Sum256(payload.Bytes())
	header := encodeRPMHeader(63, slices.Concat(r.describePackage(arch, libraries), describeFiles(files),
		[]rpmTag{text(5092, rpmStrings, hex.EncodeToString(sum[:])), numbers[uint32](5093, 8)}))
	both := slices.Concat(header, payload.Bytes())
	of1, of256, of5 := sha1.Sum(header), sha256.Sum256(header), md5.Sum(both)
	signature := encodeRPMHeader(62, []rpmTag{
		text(269, rpmString, hex.EncodeToString(of1[:])), text(273, rpmString, hex.EncodeToString(of256[:])),
		numbers(1000, uint32(len(both))), {tag: 1004, kind: rpmBytes, count: len(of5), data: of5[:]}, numbers(1007, uint32(len(archive))),
	})
	signature = append(signature, make([]byte, -len(signature)&7)...)
	lead := make([]byte, 96)
	copy(lead, []byte{0xed, 0xab, 0xee, 0xdb, 3, 0, 0, 0, 0, number})
	copy(lead[10:75], "muster-"+r.version+"-1")
	lead[77], lead[79] = 1, 5 // Linux; checksums as a header
	return r.write("muster-"+r.version+"-1."+arch+".rpm", slices.Concat(lead, signature, both))
}
