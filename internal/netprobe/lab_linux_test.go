package netprobe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// Two hosts with a cable and with other typical interfaces: a container bridge with the
// same address on both, a tunnel, and an interface that is up and leads nowhere.

const (
	labFolder = "NETPROBE_LAB_FOLDER" // set on a host of the lab
	labHost   = "NETPROBE_LAB_HOST"   // its name
)

// publish and fetch exchange a line of text through a file.
func publish(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(os.Getenv(labFolder), name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func fetch(t *testing.T, name string) string {
	t.Helper()
	var text []byte
	waitUntil(t, "the other host publishes "+name, func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(os.Getenv(labFolder), name))
		return err == nil
	})
	return string(text)
}

// waitUntil polls cond until it holds: other processes and the kernel signal nothing that
// a test could wait for.
func waitUntil(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TestLabProof runs on the hosts: it proves, decides for both and prints the result.
func TestLabProof(t *testing.T) {
	name, other := os.Getenv(labHost), "h1"
	if name == "" {
		t.Skip("it runs on the hosts of TestProofBetweenHosts")
	}
	if name == other {
		other = "h2"
	}
	list, err := Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Choose(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProver(name, found, Ports{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Answer([]byte("the key of the lab"))
	publish(t, "card-"+name, string(p.Card()))
	card := []byte(fetch(t, "card-"+other))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	proofs, err := p.Prove(ctx, card)
	if err != nil {
		t.Fatal(err)
	}
	report, err := p.Report(card, proofs)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, "report-"+name, string(report))
	decisions, err := Decide([][]byte{report, []byte(fetch(t, "report-"+other))})
	if err != nil {
		t.Fatal(err)
	}
	decisions[0].Apply(found)
	fmt.Printf("rails [%s]\n", strings.Join(decisions[0].Rails, " "))
	for _, c := range found {
		fmt.Printf("%s: %s\n", c.Name, c.Why)
	}
}

func TestProofBetweenHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	l := lab.New(t, lab.Config{Hosts: 2, Rails: 1})
	run := func(host string, words ...string) {
		t.Helper()
		if out, err := l.Command(t.Context(), host, words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %v\n%s", host, words, err, out)
		}
	}
	prove := func(t *testing.T, meanwhile func(folder string)) (output []string) {
		t.Helper()
		folder := t.TempDir()
		var ends []func()
		for i, host := range l.Hosts() {
			cmd := l.Command(t.Context(), host, os.Args[0], "-test.run=^TestLabProof$")
			cmd.Env = append(os.Environ(), labFolder+"="+folder, fmt.Sprintf("%s=h%d", labHost, i+1))
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, func() {
				if err := cmd.Wait(); err != nil {
					t.Fatalf("%s: %v\n%s", host, err, out.String())
				}
				output = append(output, out.String())
			})
		}
		if meanwhile != nil {
			meanwhile(folder)
		}
		for _, end := range ends {
			end()
		}
		return output
	}
	dev := l.Device(0)
	t.Run("a cable that is plugged in meanwhile", func(t *testing.T) {
		late := l.Hosts()[1]
		carrier := func() string {
			out, _ := l.Command(t.Context(), late, "cat", "/sys/class/net/"+dev+"/carrier").Output()
			return strings.TrimSpace(string(out))
		}
		if err := l.Link(late, 0, false); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the carrier is lost", func() bool { return carrier() == "0" })
		began := time.Now()
		for i, text := range prove(t, func(folder string) {
			waitUntil(t, "both hosts have listed their interfaces", func() bool {
				cards, _ := filepath.Glob(filepath.Join(folder, "card-h?"))
				return len(cards) == 2
			})
			if err := l.Mend(late, 0); err != nil {
				t.Fatal(err)
			}
		}) {
			if !strings.Contains(text, "rails ["+dev+"]") {
				t.Errorf("host %d does not find the cable:\n%s", i+1, text)
			}
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	for i, host := range l.Hosts() {
		for _, words := range []string{
			"ip link add docker0 type bridge", "ip addr add 172.17.0.1/16 dev docker0", "ip link set docker0 up",
			"ip link add inside type veth peer name inside-end", "ip link set inside-end master docker0", "ip link set inside up", "ip link set inside-end up",
			"ip link add eth9 type veth peer name eth9-end", fmt.Sprintf("ip addr add 10.99.0.%d/24 dev eth9", i+1), "ip link set eth9 up", "ip link set eth9-end up",
			"ip link add wg7 type veth peer name wg7-end", fmt.Sprintf("ip addr add 10.98.0.%d/24 dev wg7", i+1), "ip link set wg7 up", "ip link set wg7-end up",
		} {
			run(host, strings.Fields(words)...)
		}
	}
	t.Run("beside a cable", func(t *testing.T) {
		for i, text := range prove(t, nil) {
			for _, want := range []string{"rails [" + dev + "]", "eth9: nobody answers over it", "and it is not needed"} {
				if !strings.Contains(text, want) {
					t.Errorf("host %d does not print %q:\n%s", i+1, want, text)
				}
			}
		}
	})
	// The cable becomes a port of a bridge, as on hosts of virtual machines: then the
	// bridge leads to the other host.
	for _, host := range l.Hosts() {
		at := l.Addr(host, 0)
		for _, words := range []string{
			"ip link add br0 type bridge forward_delay 0", "ip addr flush dev " + dev, "ip link set " + dev + " master br0",
			"ip addr add " + at + "/24 dev br0", "ip link set br0 up",
		} {
			run(host, strings.Fields(words)...)
		}
		waitUntil(t, "the bridge is up", func() bool {
			out, err := l.Command(t.Context(), host, "ip", "-o", "link", "show", "br0").CombinedOutput()
			return err == nil && strings.Contains(string(out), "LOWER_UP")
		})
	}
	t.Run("over a bridge", func(t *testing.T) {
		for i, text := range prove(t, nil) {
			if !strings.Contains(text, "rails [br0]") {
				t.Errorf("host %d does not select the bridge:\n%s", i+1, text)
			}
		}
	})
}
