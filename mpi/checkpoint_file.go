package mpi

// Checkpoints in a file: a table of numbers, then the part of each rank as Checkpoint keeps it in memory.
//
//	magic, version, number of parts, length and checksum of each part, checksum of all before
//
// The file gets its name when everything is on the device, so a job that dies meanwhile leaves the
// file before.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
)

const (
	checkpointMagic = 0x31746e696f706b63 // "ckpoint1"
	checkpointHead  = 3                  // numbers before those of the parts
)

// checkpointTable is what a file has besides the parts.
type checkpointTable struct {
	version      uint64
	lengths, crc []uint64 // by part
}

// CheckpointFile stores a checkpoint in a file, for a later job ([RestoreFile]), where [Checkpoint] stores
// it in the memory of this one. A file with that name is replaced when the new one is complete. All ranks
// call it, with the same name and version; the parts may have different lengths.
func CheckpointFile[T Elem](c *Comm, name string, version int, data ...[]T) error {
	const op = "CheckpointFile"
	if err := admit[T](&c.w.types); err != nil {
		return c.refuse(ErrType, op, "%w", err)
	}
	if version < 1 {
		return c.refuse(ErrArg, op, "the version %d is less than 1", version)
	}
	part := pack(&checkpoints{}, data)
	mine := []uint64{uint64(len(part)), uint64(crc32.Checksum(part, crc32.MakeTable(crc32.Castagnoli)))}
	all := make([]uint64, 2*c.size)
	if err := allgather(c, op, mine, all); err != nil {
		return err
	}
	t := checkpointTable{version: uint64(version)}
	for r := range c.size {
		t.lengths, t.crc = append(t.lengths, all[2*r]), append(t.crc, all[2*r+1])
	}
	f, err := c.openFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, FileHints{})
	if err != nil {
		return err
	}
	_, err = f.WriteAt(part, t.offset(c.rank))
	if c.rank == 0 && err == nil {
		_, err = f.WriteAt(t.encode(), 0)
	}
	err = f.f.agree(op, err)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		if c.rank == 0 {
			err = os.Rename(name+".new", name)
		}
		err = f.f.agree(op, err)
	}
	return errors.Join(err, f.Close())
}

// RestoreFile returns the checkpoint of a file, and its version. c may have any number of ranks: each
// gets consecutive parts, in the order of the ranks that have saved them; with as many ranks as then, its own
// part. If the file is damaged or incomplete, the error has the class [ErrIO] on all ranks. All ranks call it.
func RestoreFile[T Elem](c *Comm, name string) (version int, parts []Part[T], err error) {
	const op = "RestoreFile"
	if err := admit[T](&c.w.types); err != nil {
		return 0, nil, c.refuse(ErrType, op, "%w", err)
	}
	f, err := c.openFile(name, os.O_RDONLY, FileHints{})
	if err != nil {
		return 0, nil, err
	}
	t, err := readCheckpoint(f)
	if err == nil {
		n := len(t.lengths)
		for p := c.rank * n / c.size; p < (c.rank+1)*n/c.size && err == nil; p++ {
			var data [][]T
			if data, err = readPart[T](f, t, p); err == nil {
				parts = append(parts, Part[T]{Rank: p, Size: n, Data: data})
			}
		}
		version = int(t.version)
	}
	if err = errors.Join(f.f.agree(op, err), f.Close()); err != nil {
		return 0, nil, err
	}
	return version, parts, nil
}

// offset returns where a part begins.
func (t *checkpointTable) offset(part int) int64 {
	at := uint64(8 * (checkpointHead + 2*len(t.lengths) + 1))
	for _, n := range t.lengths[:part] {
		at += n
	}
	return int64(at)
}

func (t *checkpointTable) encode() []byte {
	words := []uint64{checkpointMagic, t.version, uint64(len(t.lengths))}
	for i := range t.lengths {
		words = append(words, t.lengths[i], t.crc[i])
	}
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return binary.LittleEndian.AppendUint64(b, uint64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}

var errDamaged = errors.New("it is not a complete checkpoint")

// readCheckpoint reads the table of a file.
func readCheckpoint(f *File) (t checkpointTable, err error) {
	head := make([]byte, 8*checkpointHead)
	if n, err := f.ReadAt(head, 0); n < len(head) || binary.LittleEndian.Uint64(head) != checkpointMagic {
		return t, errors.Join(errDamaged, err)
	}
	size, err := f.Size()
	parts := binary.LittleEndian.Uint64(head[16:])
	if err != nil || parts > uint64(size)/16 {
		return t, errors.Join(errDamaged, err)
	}
	all := make([]byte, len(head)+16*int(parts)+8)
	if n, err := f.ReadAt(all, 0); n < len(all) {
		return t, errors.Join(errDamaged, err)
	}
	t.version = binary.LittleEndian.Uint64(head[8:])
	for b := all[len(head) : len(all)-8]; len(b) > 0; b = b[16:] {
		t.lengths, t.crc = append(t.lengths, binary.LittleEndian.Uint64(b)), append(t.crc, binary.LittleEndian.Uint64(b[8:]))
	}
	if string(t.encode()) != string(all) {
		return t, errDamaged
	}
	return t, nil
}

func readPart[T Elem](f *File, t checkpointTable, p int) ([][]T, error) {
	size, err := f.Size()
	at := t.offset(p)
	if err != nil || at < 0 || t.lengths[p] > uint64(max(0, size-at)) {
		return nil, errors.Join(errDamaged, err)
	}
	b := make([]byte, t.lengths[p])
	if n, err := f.ReadAt(b, at); n < len(b) {
		return nil, errors.Join(errDamaged, err)
	}
	if uint64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))) != t.crc[p] {
		return nil, fmt.Errorf("%w: the checksum of part %d is wrong", errDamaged, p)
	}
	return unpack[T](b)
}
