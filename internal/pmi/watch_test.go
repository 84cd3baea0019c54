package pmi

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// watchedClient returns a client connected to a server by a socket, as under a launcher.
// end closes the launcher's side, as the kernel does.
func watchedClient(t *testing.T) (c *wireClient, reported chan error, end func()) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "launcher"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go NewServer(ServerConfig{Size: 1}).Serve(0, theirs)
	t.Cleanup(func() { theirs.Close(); ours.Close() })
	if c, err = joinWire(t.Context(), ours.(wireConn), 0, 1, nil, nil, Terms{}); err != nil {
		t.Fatal(err)
	}
	reported = make(chan error, 2)
	c.Watch(func(err error) { reported <- err })
	return c, reported, func() { theirs.Close() }
}

func TestWatchReportsLauncherExit(t *testing.T) {
	c, reported, end := watchedClient(t)
	// Requests and answers work during Watch.
	if err := c.Put("card", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(t.Context(), 0, "card"); err != nil || string(got) != "x" {
		t.Fatalf("Get beside Watch: %q, %v", got, err)
	}
	select {
	case err := <-reported:
		t.Fatalf("nothing has happened to the launcher: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	end()
	select {
	case err := <-reported:
		var gone *LauncherError
		if !errors.As(err, &gone) {
			t.Errorf("the end of the launcher is reported as %v (%T)", err, err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the launcher is gone, and the function was not called")
	}
}

func TestWatchAfterClose(t *testing.T) {
	c, reported, end := watchedClient(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	end()
	select {
	case err := <-reported:
		t.Errorf("the function was called after Close: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestWatchReportsDeathWithoutLauncher(t *testing.T) {
	clients := clientsOf(t, gather(t, 20*time.Second, 3, freePort(t), nil))
	reported := make(chan error, 4)
	for _, c := range clients[:2] {
		c.Watch(func(err error) { reported <- err })
	}
	clients[2].(*wireClient).conn.Close() // as the kernel does when the process dies
	for range 2 {
		select {
		case err := <-reported:
			var dead *DeadError
			if !errors.As(err, &dead) || dead.Rank != 2 {
				t.Errorf("the death of rank 2 is reported as %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a death was not reported")
		}
	}
}
