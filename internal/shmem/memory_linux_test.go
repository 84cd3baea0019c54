package shmem

import (
	"os"
	"strings"
	"testing"
)

// TestShare finds the memory of a process, as a memfd and as a file, until it is hidden.
func TestShare(t *testing.T) {
	for name, noMemfd := range map[string]bool{"memfd": false, "file": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m, err := Share(1000, dir, noMemfd)
			if err != nil {
				t.Fatal(err)
			}
			m.Bytes[999] = 7
			found, err := Find(m.Address, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(found.Bytes) != 1000 || found.Bytes[999] != 7 {
				t.Errorf("the found memory has %d bytes, the last is %d", len(found.Bytes), found.Bytes[999])
			}
			m.Hide()
			if again, err := Find(m.Address, 1000); err == nil {
				t.Error("hidden memory was found", again.Close())
			}
			for range 2 {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
			if found.Bytes[999] != 7 {
				t.Error("a mapping must outlive the creator's")
			}
			if err := found.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("%v is left in the directory", left)
			}
		})
	}
}

// TestFindRejects checks that the address of something else is rejected.
func TestFindRejects(t *testing.T) {
	dir := t.TempDir()
	m, err := Share(1000, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	short := dir + "/short"
	if err := os.WriteFile(short, []byte("not memory"), 0o600); err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(m.Address)
	fields[2] = "1"
	for address, want := range map[string]string{
		"nonsense":                 "not the address",
		strings.Join(fields, " "):  "not the shared memory",
		"0 0 7 " + short:           "needed",
		"0 0 7 " + dir + "/absent": "no such file",
	} {
		if m, err := Find(address, 1000); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that contains %q", address, err, want)
			if m != nil {
				m.Close()
			}
		}
	}
	if _, err := Find(m.Address, 2000); err == nil {
		t.Error("memory of 1000 bytes is found as memory of 2000")
	}
}

// TestSealed checks that a memfd cannot be made shorter than the mappings of others.
func TestSealed(t *testing.T) {
	f, err := CreateMemfd("test", 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Truncate(1<<12) == nil {
		t.Error("a memfd was truncated")
	}
}
