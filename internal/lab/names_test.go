package lab

import (
	"bufio"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// named creates a lab that outlives its process, with a unique name.
func named(t *testing.T, letter string, cfg Config) *Lab {
	t.Helper()
	cfg.Name = "test" + letter + strconv.Itoa(os.Getpid())
	return New(t, cfg)
}

func TestFind(t *testing.T) {
	made := named(t, "a", Config{Hosts: 3, Rails: 2, MTU: 4000})
	name := made.cfg.Name
	found, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found.Hosts(), made.Hosts()) || found.Rails() != 2 || found.cfg.MTU != 4000 {
		t.Errorf("found %+v, made %+v", found, made)
	}
	for _, word := range []string{"h2", made.Hosts()[1]} {
		if got, err := found.Host(word); got != made.Hosts()[1] || err != nil {
			t.Errorf("%s is %s, %v", word, got, err)
		}
	}
	if _, err := found.Host("h4"); err == nil || !strings.Contains(err.Error(), "h1 to h3") {
		t.Errorf("a host that does not exist: %v", err)
	}
	if _, err := Create(Config{Name: name}); err == nil || !strings.Contains(err.Error(), "up already") {
		t.Errorf("a second lab with the same name: %v", err)
	}
	if !slices.Contains(Names(), name) {
		t.Errorf("%s is not among %q", name, Names())
	}
	if err := Remove(name); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range allNamespaces() {
		if strings.HasPrefix(namespace, made.name) {
			t.Errorf("%s is still there", namespace)
		}
	}
	for what, err := range map[string]error{"find": second(Find(name)), "remove": Remove(name)} {
		if err == nil || !strings.Contains(err.Error(), "there is no lab") {
			t.Errorf("%s a removed lab: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestNamedLabsAreIsolated(t *testing.T) {
	one, two := named(t, "b", Config{}), named(t, "c", Config{})
	startEcho(t, one, one.Hosts()[0], ":7000")
	if got := answer(t, one, one.Hosts()[1], one.Hosts()[0]+":7000"); got != "hello" {
		t.Errorf("in one lab: %q", got)
	}
	if got := answer(t, two, two.Hosts()[1], two.Addr(two.Hosts()[0], 0)+":7000"); !strings.Contains(got, "refused") {
		t.Errorf("the same address in the other lab answers %q", got)
	}
	if err := one.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(two.cfg.Name); err != nil {
		t.Errorf("the other lab after the removal of one: %v", err)
	}
}

func TestRemoveIncompleteLab(t *testing.T) {
	l := named(t, "d", Config{})
	name := l.cfg.Name
	if err := l.ip(l.switchName(), "link set rail0 alias half\nlink del h2r0\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(name); err == nil || !strings.Contains(err.Error(), "muster lab down --name "+name) {
		t.Errorf("finding half a lab: %v", err)
	}
	// Not even a switch.
	if err := removeHost(l.switchName()); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(name); err == nil || !strings.Contains(err.Error(), "muster lab down --name "+name) {
		t.Errorf("finding a lab without a switch: %v", err)
	}
	if err := Remove(name); err != nil || slices.Contains(Names(), name) {
		t.Errorf("removing half a lab: %v", err)
	}
}

func TestStatus(t *testing.T) {
	l := named(t, "e", Config{Rails: 2, Rate: "100mbit", Loss: 0.25})
	a, b := l.Hosts()[0], l.Hosts()[1]
	server := startEcho(t, l, b, ":7000")
	for _, do := range []error{
		l.Rate(a, 0, "2.5gbit"), l.Rate(a, 1, ""), l.Loss(a, 0, 0), l.Loss(a, 1, 1), l.Cut(b, 0), l.Link(b, 1, false),
	} {
		if do != nil {
			t.Fatal(do)
		}
	}
	found, err := Find(l.cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := found.Status()
	if err != nil {
		t.Fatal(err)
	}
	want := &Status{Name: l.cfg.Name, MTU: 1500, Hosts: []HostStatus{
		{Name: a, Links: []LinkStatus{{Addr: l.Addr(a, 0), Rate: 25e8}, {Addr: l.Addr(a, 1), Loss: 1}}},
		{Name: b, Processes: []int{server.Process.Pid}, Links: []LinkStatus{
			{Addr: l.Addr(b, 0), Cut: true, Rate: 1e8, Loss: 0.25}, {Addr: l.Addr(b, 1), Unplugged: true, Rate: 1e8, Loss: 0.25}}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the status is\n%+v\nand should be\n%+v", got, want)
	}
}

func TestStaleLabIsRemoved(t *testing.T) {
	if err := Usable(); err != nil {
		t.Skip(err)
	}
	const prefix = "mustertest"
	maker := exec.CommandContext(t.Context(), os.Args[0])
	maker.Env = append(os.Environ(), "LAB_TEST_ROLE=make a lab", "LAB_TEST_PREFIX="+prefix)
	out, err := maker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := maker.Start(); err != nil {
		t.Fatal(err)
	}
	host, err := bufio.NewReader(out).ReadString('\n')
	host = strings.TrimSpace(host)
	if err != nil || !exists(host) {
		t.Errorf("the process printed %q, %v, and there is no such host", host, err)
	}
	New(t, Config{Prefix: prefix, Hosts: 1})
	if !exists(host) {
		t.Error("the lab of a process that is alive was removed")
	}
	if err := maker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = maker.Wait() // it was killed
	New(t, Config{Prefix: prefix, Hosts: 1})
	name := strings.TrimSuffix(host, "h1")
	for _, namespace := range allNamespaces() {
		if strings.HasPrefix(namespace, name) {
			t.Errorf("%s is still there", namespace)
		}
	}
}
