package pmi

import (
	"bufio"
	"net"
	"testing"
)

// TestInitToOtherLaunchers: Slurm's pmi2 plugin reads init into 64 bytes, and ends the step if
// it is longer.
func TestInitToOtherLaunchers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	lines := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			lines <- err.Error()
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		if _, err := r.ReadString('\n'); err != nil { // the number of the process
			lines <- err.Error()
			return
		}
		_, _ = conn.Write([]byte("cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=0\ncmd=set debug=0\n"))
		line, err := r.ReadString('\n')
		if err != nil {
			line = err.Error()
		}
		lines <- line
	}()
	env := map[string]string{envPort: l.Addr().String(), envID: "0"}
	_, err = Open(t.Context(), func(name string) string { return env[name] }, Terms{Protocol: 1, Version: "v1.2.3", Settings: []Setting{{"MUSTER_CHANNEL", "rd"}}})
	if err == nil {
		t.Error("joined a job whose launcher does not answer")
	}
	if got := <-lines; got != "cmd=init pmi_version=1 pmi_subversion=1\n" {
		t.Errorf("init is %q", got)
	}
}
