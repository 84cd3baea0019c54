//go:build !windows

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

func TestSchedLists(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"Examples:", "Collectives and their algorithms:", "allgather", "bruck"}},
		{[]string{"allgather"}, []string{"allgather --algorithm bruck", "--param ports=1", "from Bruck"}},
		{[]string{"--list"}, []string{"barrier --algorithm dissemination", "exscan --algorithm"}},
	} {
		got := muster(t, t.TempDir(), append([]string{"sched"}, c.args...)...)
		for _, want := range c.want {
			if got.status != 0 || !strings.Contains(got.out, want) {
				t.Errorf("muster sched %q does not print %q: %+v", c.args, want, got)
			}
		}
	}
}

func TestSchedRejectsBadFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"allgahter"}, "unknown collective"},
		{[]string{"allgather", "-a", "teleport"}, "; it has "},
		{[]string{"allgather", "-a", "bruck", "-n", "0"}, "1 to 4096 ranks"},
		{[]string{"bcast", "-a", "binomial", "-n", "4", "--root", "4"}, "ranks 0 to 3"},
		{[]string{"allgather", "-a", "bruck", "--param", "wings=2"}, `no parameter "wings"; it has ports`},
		{[]string{"allgather", "-a", "bruck", "--param", "ports"}, "such as ports=2"},
		{[]string{"allgather", "-a", "bruck", "--ports", "-1"}, "want at least 1"},
		{[]string{"bcast", "-a", "binomial", "--ports", "2"}, "it has none"},
		{[]string{"allgather", "-a", "bruck", "--bytes", "many"}, "want a number of bytes"},
		{[]string{"allgather", "-a", "bruck", "-n", "3", "--rank", "3"}, "ranks 0 to 2"},
		{[]string{"allgather", "-a", "neighbor-exchange", "-n", "3"}, "odd"},
		{[]string{"allgather", "-a", "node-bruck"}, "all ranks are on one node"},
		{[]string{"allgather", "-a", "node-bruck", "--nodes", "4by4"}, "use 4x4"},
		{[]string{"allgather", "-a", "node-bruck", "--nodes", "3,0"}, "use 4x4"},
		{[]string{"allgather", "-a", "node-bruck", "--nodes", "4096x4096"}, "at most 4096 ranks"},
	} {
		got := muster(t, t.TempDir(), append([]string{"sched"}, c.args...)...)
		if got.status == 0 || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("muster sched %q must be refused with %q; got %+v", c.args, c.want, got)
		}
	}
}

// TestSchedOnNodes: T2 table 5.1, two groups on four nodes of four ranks: six
// connections, 12 blocks over the network, and of 4 + 16 blocks written and 4 + 64 read
// minus those that a node leader has already (2 written, 2 + 16 read).
func TestSchedOnNodes(t *testing.T) {
	got := muster(t, t.TempDir(), "sched", "allgather", "-a", "node-groups", "--nodes", "4x4", "--param", "groups=2", "--bytes", "1")
	want := "     3      4                6   6          12        12                     18    50\n"
	if got.status != 0 || !strings.Contains(got.out, "16 ranks on nodes 4×4") || !strings.Contains(got.out, want) || !strings.Contains(got.out, "proved:") {
		t.Errorf("muster sched does not print %q: %+v", want, got)
	}
	uneven := muster(t, t.TempDir(), "sched", "alltoall", "-a", "node-carriers", "--nodes", "3,1,4", "--svg", "carriers.svg")
	if uneven.status != 0 || !strings.Contains(uneven.out, "8 ranks on nodes [3 1 4]") {
		t.Errorf("uneven nodes: %+v", uneven)
	}
}

func TestSchedText(t *testing.T) {
	got := muster(t, t.TempDir(), "sched", "allgather", "--algorithm", "bruck", "-n", "9", "--ports", "2", "--text")
	// T2 equation 3.4: two steps, and in each of two ports (9-1)/2 blocks of 8 bytes.
	for _, want := range []string{"allgather by bruck (ports 2), 9 ranks, blocks of 8 bytes\n", "2 steps, 36 messages, 576 bytes; the busiest rank sends 64 and receives 64", "\nproved: "} {
		if got.status != 0 || !strings.Contains(got.out, want) {
			t.Fatalf("the schedule lacks %q: %+v", want, got)
		}
	}
	graphs := strings.Split(got.out, "\nrank ")[1:]
	if len(graphs) != 9 {
		t.Fatalf("the text has %d graphs, want 9: %+v", len(graphs), got)
	}
	one := muster(t, t.TempDir(), "sched", "allgather", "--algorithm", "bruck", "-n", "9", "--ports", "2", "--rank", "7")
	if !strings.HasSuffix(one.out, "\n\nrank "+graphs[7]) {
		t.Errorf("--rank 7 does not print the graph of rank 7 alone: %+v", one)
	}
}

// Every algorithm can be drawn, and the picture is XML with a tooltip for each
// message. Those that need several nodes are drawn on two.
func TestSchedDrawsEveryAlgorithm(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	for _, a := range coll.Algorithms() {
		f := schedFlags{algorithm: a.Name, ranks: 6, root: 1, svg: file}
		if !a.Kind.Rooted() {
			f.root = 0
		}
		if a.Needs.Nodes {
			f.nodes = "3,3"
		}
		var out strings.Builder
		if err := showSchedule(&out, a.Kind, &f, false); err != nil {
			t.Errorf("%s by %s: %v", a.Kind, a.Name, err)
			continue
		}
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		titles, inTitle := 0, false
		for d := xml.NewDecoder(in); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s by %s: the picture is no XML: %v", a.Kind, a.Name, err)
			}
			switch e := token.(type) {
			case xml.StartElement:
				if inTitle = e.Name.Local == "title"; inTitle {
					titles++
				}
			case xml.CharData:
				if inTitle && strings.Contains(string(e), "?") {
					t.Errorf("%s by %s: unknown contents in %s", a.Kind, a.Name, e)
				}
			case xml.EndElement:
				inTitle = false
			}
		}
		in.Close()
		if titles < 10 {
			t.Errorf("%s by %s: the picture has %d tooltips", a.Kind, a.Name, titles)
		}
	}
}

// The pictures in the documentation match the current output.
func TestDocPicturesAreCurrent(t *testing.T) {
	for _, c := range []struct {
		kind      coll.Kind
		algorithm string
	}{{coll.Allgather, "standard-exchange"}, {coll.Allgather, "bruck"}, {coll.Alltoall, "bruck"}} {
		name := c.kind.String() + "-" + c.algorithm + ".svg"
		f := schedFlags{algorithm: c.algorithm, ranks: 9, ports: 2, svg: filepath.Join(t.TempDir(), name)}
		if err := showSchedule(io.Discard, c.kind, &f, false); err != nil {
			t.Fatal(err)
		}
		drawn, err := os.ReadFile(f.svg)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join("..", "..", "docs", "pictures", name))
		if err != nil || string(kept) != string(drawn) {
			t.Errorf("docs/pictures/%s is outdated (%v); regenerate it: muster sched %s --algorithm %s -n 9 --ports 2 --svg docs/pictures/%s",
				name, err, c.kind, c.algorithm, name)
		}
	}
}

// TestSchedParamsAreSizes writes the same parameter in two ways.
func TestSchedParamsAreSizes(t *testing.T) {
	var outputs []string
	for _, segment := range []string{"segment=16384", "segment=16K"} {
		got := muster(t, t.TempDir(), "sched", "bcast", "-a", "chain", "-n", "3", "--bytes", "64K", "--param", segment)
		if got.status != 0 {
			t.Fatalf("%+v", got)
		}
		outputs = append(outputs, got.out)
	}
	if outputs[0] != outputs[1] || !strings.Contains(outputs[0], "16384") {
		t.Errorf("segment=16384 and segment=16K print\n%s\n%s", outputs[0], outputs[1])
	}
}
