package doctor

// Whether one process may copy from the memory of another can only be tested. The doctor
// starts two children, as a launcher starts ranks: one stores a secret and reports its
// address, the other reads it from there.
//
//	doctor ── starts ──→ owner:  "PID ADDRESS\n"
//	doctor ── starts ──→ reader PID ADDRESS:  the secret
//	doctor compares it with the secret that it sent to the owner

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const secretLen = 26 // of rand.Text

// tryProcessVM returns why it is not possible, or "" if it is.
func tryProcessVM(ctx context.Context, self []string) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	secret := rand.Text()[:secretLen]
	owner := exec.CommandContext(ctx, self[0], append(self[1:len(self):len(self)], "owner")...)
	owner.WaitDelay = time.Second
	in, err := owner.StdinPipe()
	if err != nil {
		return err.Error()
	}
	out, err := owner.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	if err := owner.Start(); err != nil {
		return "the trial could not be made: " + err.Error()
	}
	defer func() { _ = owner.Wait() }() // ended by the closed input or by the deadline
	defer in.Close()
	if _, err := io.WriteString(in, secret); err != nil {
		return "the trial could not be made: " + err.Error()
	}
	location, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "the trial could not be made: its process printed nothing"
	}
	reader := exec.CommandContext(ctx, self[0], append(self[1:len(self):len(self)], "reader")...)
	reader.WaitDelay = time.Second
	reader.Stdin = strings.NewReader(location)
	got, err := reader.Output()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		return strings.TrimSpace(string(got))
	case err != nil:
		return "the trial could not be made: " + err.Error()
	case string(got) != secret:
		return "process_vm_readv returned wrong data"
	}
	return ""
}

// Role runs a process that the doctor has started. It returns the exit status.
func Role(name string, in io.Reader, out io.Writer) int {
	var err error
	switch name {
	case "owner":
		err = ownSecret(in, out)
	case "reader":
		err = readSecret(in, out)
	default:
		err = fmt.Errorf("there is no role %q", name)
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	return 0
}

// ownSecret stores a secret outside the Go heap until its input ends.
func ownSecret(in io.Reader, out io.Writer) error {
	mem, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(in, mem[:secretLen]); err != nil {
		return err
	}
	// As a rank does, see permitReach in rdma/shm.
	_ = unix.Prctl(unix.PR_SET_PTRACER, unix.PR_SET_PTRACER_ANY, 0, 0, 0)
	if _, err := fmt.Fprintln(out, os.Getpid(), reflect.ValueOf(mem).Pointer()); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, in)
	return unix.Munmap(mem)
}

func readSecret(in io.Reader, out io.Writer) error {
	var pid int
	var location string
	if _, err := fmt.Fscan(in, &pid, &location); err != nil {
		return err
	}
	addr, err := strconv.ParseUint(location, 10, 64)
	if err != nil {
		return err
	}
	secret := make([]byte, secretLen)
	local := []unix.Iovec{{Base: &secret[0]}}
	local[0].SetLen(secretLen)
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: secretLen}}, 0)
	if err != nil {
		return fmt.Errorf("process_vm_readv: %w", err)
	}
	_, err = out.Write(secret[:n])
	return err
}
