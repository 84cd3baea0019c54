//go:build !muster_portable

package mpi_test

// What an observer of the network can read. The test starts itself again in its own network
// namespace, records every packet there, and runs jobs of two processes without a launcher,
// whose payloads are known.

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpitest"
)

// insideVar marks a process in the namespace.
const insideVar = "MPI_TEST_INSIDE"

func TestWiretap(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("a rank starts no jobs")
	}
	if testing.Short() || race.Enabled {
		t.Skip("starts processes, which the race detector cannot see")
	}
	if os.Getenv(insideVar) != "" {
		wiretap(t)
		return
	}
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestWiretap$", "-test.v")
	cmd.Env = append(os.Environ(), insideVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("a network namespace cannot be made here: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.Bytes())
	} else if testing.Verbose() {
		t.Logf("\n%s", out.Bytes())
	}
}

// wiretap runs in the namespace.
func wiretap(t *testing.T) {
	noError(t, linkUp("lo"), "bring the loopback interface up")
	rails := twoLinks(t)
	for _, c := range []struct{ name, device, env string }{
		{"hybrid", "hybrid", "MUSTER_CHANNEL=hybrid"},
		{"datagrams, rings, get", "rd", "MUSTER_CHANNEL=rd MUSTER_EAGER=rings MUSTER_RENDEZVOUS=get"},
		{"datagrams, put", "rd", "MUSTER_CHANNEL=rd MUSTER_RENDEZVOUS=put"},
		{"connections, get", "rc", "MUSTER_CHANNEL=rc MUSTER_EAGER=few MUSTER_RENDEZVOUS=get"},
		{"connections, put", "rc", "MUSTER_CHANNEL=rc MUSTER_RENDEZVOUS=put"},
		{"unreliable datagrams", "ud", "MUSTER_CHANNEL=ud"},
		{"rails", "rail", "MUSTER_CHANNEL=rd MUSTER_INTERFACE=" + rails},
	} {
		for _, encrypt := range []string{"on", "off"} {
			t.Run(c.name+", encryption "+encrypt, func(t *testing.T) {
				if strings.HasSuffix(c.env, "=") {
					t.Skip("needs the command ip (Debian package iproute2)")
				}
				wiretapJob(t, c.device, encrypt == "on", append(strings.Fields(c.env), "MUSTER_ENCRYPT="+encrypt)...)
			})
		}
	}
}

// twoLinks creates interfaces for packets of this host to itself. It returns "" if that is
// not possible.
func twoLinks(t *testing.T) (names string) {
	for i, name := range []string{"rail0", "rail1"} {
		if exec.Command("ip", "link", "add", name, "type", "veth", "peer", "name", name+"p").Run() != nil ||
			exec.Command("ip", "addr", "add", fmt.Sprintf("10.99.%d.1/24", i), "dev", name).Run() != nil {
			return ""
		}
		noError(t, linkUp(name), "bring an interface up")
		noError(t, linkUp(name+"p"), "bring an interface up")
	}
	return "rail0,rail1"
}

func wiretapJob(t *testing.T, device string, encrypted bool, env ...string) {
	key := rand.Text()
	packets := recordAll(t)
	outs, errs := jobWithoutLauncher(t, key, env, env)
	seen := packets()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v\n%s", rank, err, outs[rank].Bytes())
		}
	}
	output := outs[0].String()
	if !strings.Contains(output, "device "+device+"\n") {
		t.Errorf("messages must go over %s\n%s", device, output)
	}
	_, text, _ := strings.Cut(output, "key ")
	network, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(network) != 32 {
		t.Fatalf("rank 0 must print the key of the network: %v\n%s", err, output)
	}
	for what, secret := range map[string][]byte{
		"the key of the job": []byte(key), "the key of the network": network,
		"a request of PMI": []byte("cmd=put"), "a fence of PMI": []byte("cmd=barrier_in"), "the name of a value of PMI": []byte("muster-network-key"),
	} {
		for form, bytes := range map[string][]byte{
			"as it is": secret, "in hex": []byte(hex.EncodeToString(secret)),
			"in base64": []byte(base64.RawStdEncoding.EncodeToString(secret)), "in base64 of PMI": []byte(base64.RawURLEncoding.EncodeToString(secret)),
		} {
			if seen.hold(bytes) {
				t.Errorf("%s can be read on the wire, %s", what, form)
			}
		}
	}
	if !seen.hold([]byte("MUSTER ")) {
		t.Errorf("the recording of %d packets must hold the handshake of the ranks", len(seen))
	}
	for what, mark := range wiretapMarks {
		switch readable := seen.hold([]byte(mark)); {
		case readable && encrypted:
			t.Errorf("%s can be read on the wire", what)
		case !readable && !encrypted:
			t.Errorf("%s must be in the recording, or this test finds nothing", what)
		}
	}
}

// jobWithoutLauncher runs the program of wiretap_test.go, one process for each of the
// environments. It returns their outputs.
func jobWithoutLauncher(t *testing.T, key string, envs ...[]string) (outs []bytes.Buffer, errs []error) {
	t.Helper()
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err, "find a free port")
	root := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	outs, errs = make([]bytes.Buffer, len(envs)), make([]error, len(envs))
	var wg sync.WaitGroup
	for rank, env := range envs {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), programVar+"=wiretap", "MUSTER_NETWORK=iwarp", "MUSTER_NO_SHARED_MEMORY=1",
			fmt.Sprint("MUSTER_RANK=", rank), fmt.Sprint("MUSTER_SIZE=", len(envs)), "MUSTER_ROOT="+root, "MUSTER_KEY="+key)
		cmd.Env = append(cmd.Env, env...)
		cmd.Stdout, cmd.Stderr = &outs[rank], &outs[rank]
		wg.Go(func() { errs[rank] = cmd.Run() })
	}
	wg.Wait()
	return outs, errs
}

// If only one of the processes encrypts, all fail at once and report the reason.
func TestMixedEncryptionEndsTheJob(t *testing.T) {
	if mpitest.Launched() || testing.Short() {
		t.Skip("starts processes")
	}
	began := time.Now()
	on, off := []string{"MUSTER_ENCRYPT=on"}, []string{"MUSTER_ENCRYPT=off"}
	outs, errs := jobWithoutLauncher(t, rand.Text(), off, on, off)
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v to refuse them", d)
	}
	for rank, err := range errs {
		out := outs[rank].String()
		if err == nil || !strings.Contains(out, "has MUSTER_ENCRYPT=on, but rank 0 on ") || !strings.Contains(out, "rank 1 on ") || !strings.Contains(out, "has MUSTER_ENCRYPT=off") {
			t.Errorf("rank %d must fail and name the ranks and their settings: %v\n%s", rank, err, out)
		}
	}
}

// packets are the recorded packets.
type packets [][]byte

func (p packets) hold(b []byte) bool {
	for _, one := range p {
		if bytes.Contains(one, b) {
			return true
		}
	}
	return false
}

// recordAll records all packets of this network namespace until stop is called.
func recordAll(t *testing.T) (stop func() packets) {
	t.Helper()
	every := uint16(unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8) // in the network's order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(every))
	noError(t, err, "record packets")
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<20) // as much as is allowed
	}
	pause := unix.NsecToTimeval(int64(20 * time.Millisecond))
	noError(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &pause), "set a timeout")
	done := make(chan struct{})
	var seen packets
	var wg sync.WaitGroup
	wg.Go(func() {
		defer unix.Close(fd)
		buffer := make([]byte, 256<<10)
		for {
			n, _, err := unix.Recvfrom(fd, buffer, 0)
			if err == nil {
				seen = append(seen, bytes.Clone(buffer[:n]))
				continue
			}
			select {
			case <-done: // and nothing more has come
				return
			default:
			}
		}
	})
	return func() packets {
		close(done)
		wg.Wait()
		return seen
	}
}

func linkUp(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
