//go:build ofi && cgo && linux

package ofi

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// readsRole prints how many bytes were read while a device was opened.
func readsRole() error {
	before, err := bytesRead()
	if err != nil {
		return err
	}
	d, err := Open(Config{Provider: "net", Interface: "127.0.0.1", Job: "reads"})
	if err != nil {
		return err
	}
	after, err := bytesRead()
	if err != nil {
		return err
	}
	fmt.Println(after - before)
	return d.Close()
}

// bytesRead returns the number of bytes that this process has read so far.
func bytesRead() (n int64, err error) {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fscanf(strings.NewReader(string(b)), "rchar: %d\n", &n)
	return n, err
}

func TestOpenDoesNotReadKernelSymbols(t *testing.T) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Skip("this kernel shows no symbols:", err)
	}
	defer f.Close()
	symbols, err := io.Copy(io.Discard, f)
	if err != nil {
		t.Fatal(err)
	}
	var read int64
	if _, err := fmt.Sscan(start(t, "reads").line(t), &read); err != nil {
		t.Fatal(err)
	}
	if read >= symbols {
		t.Errorf("opening libfabric reads %d bytes; the symbols of the kernel are %d", read, symbols)
	}
}
