//go:build ofi && cgo && linux

package ofi

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

// handlersRole prints whether the handlers of all signals are the same after the device
// was opened as before, and whether a nil dereference is still a panic.
func handlersRole() error {
	before := signalHandlers()
	d, err := Open(Config{Provider: os.Getenv("PROVIDER"), Interface: "127.0.0.1", Job: "signals"})
	if err != nil {
		return err
	}
	same := string(before) == string(signalHandlers())
	err = dereference(nil)
	fmt.Println(same, err)
	return d.Close()
}

// dereference reads through a pointer and converts a panic to an error.
func dereference(p *int) (err error) {
	debug.SetPanicOnFault(true)
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("panic: %v", why)
		}
	}()
	return fmt.Errorf("read %d", *p)
}

func TestSignalHandlersUnchanged(t *testing.T) {
	for _, provider := range []string{"", "net", "tcp;ofi_rxm", "udp;ofi_rxd"} {
		got := start(t, "handlers", "PROVIDER="+provider).line(t)
		if want := "true panic: runtime error: invalid memory address or nil pointer dereference"; got != want {
			t.Errorf("provider %q: handlers unchanged and what a nil dereference does: %q, it should be %q", provider, got, want)
		}
	}
}

func TestNilDereferenceIsAPanicAfterOpen(t *testing.T) {
	openAll(t, 1, Config{Provider: "net"})
	if err := dereference(nil); err == nil || err.Error() != "panic: runtime error: invalid memory address or nil pointer dereference" {
		t.Errorf("a nil dereference causes: %v", err)
	}
}

// lingerRole opens a device, prints its address, and stays until it is killed.
func lingerRole() error {
	r, err := openRank(Config{Provider: os.Getenv("PROVIDER"), Job: "linger", Index: 1, Peers: 2})
	if err != nil {
		return err
	}
	fmt.Println(r.qp.Addr())
	for {
		r.cq.Poll(r.out)
		if err := r.cq.Wait(testTimeout); err != nil {
			return err
		}
	}
}
