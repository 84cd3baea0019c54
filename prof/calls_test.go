package prof

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestMergeSites merges ranks in another order and grouping.
func TestMergeSites(t *testing.T) {
	ranks := calling()
	want := whole(ranks)
	right := Summarize(ranks[3])
	right.Merge(Summarize(ranks[2]))
	left := Summarize(ranks[1])
	left.Merge(Summarize(ranks[0]))
	right.Merge(left)
	if !reflect.DeepEqual(right.Sites, want.Sites) || !reflect.DeepEqual(right.Waits, want.Waits) {
		t.Errorf("the order of merging matters: %+v and %+v", right.Sites, want.Sites)
	}
	recv, send, irecv := want.Sites[0], want.Sites[1], want.Sites[2]
	if irecv.Overlap != (Overlap{Operations: 200, Early: 184, Time: 800_000_000, Hidden: 700_000_000, HiddenEarly: 680_000_000, Waited: 40_000_000}) {
		t.Errorf("the receives that ranks 0 and 2 have started are %+v", irecv.Overlap)
	}
	if recv.Calls != (Spread{Sum: 5, Min: 0, MinAt: 0, Max: 5, MaxAt: 2}) {
		t.Errorf("a call of rank 2 only has the statistics %+v", recv.Calls)
	}
	if send.Calls.Sum != 10_000 || send.Time.MaxAt != 3 || send.LongestAt != 3 || send.Shortest != 8 || len(send.Sizes) != 5 || send.Sizes[4].Count != 9900 {
		t.Errorf("the sends of all ranks have the statistics %+v", send)
	}
	again, err := Unpack(want.Pack())
	if err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("the summary does not survive packing: %v, %+v", err, again)
	}
}

func TestOverlapShares(t *testing.T) {
	for _, c := range []struct {
		o           Overlap
		least, most float64
	}{
		{Overlap{Operations: 1}, 0, 0}, // complete when its call returned
		{Overlap{Operations: 2, Early: 2, Time: 100, Hidden: 90, HiddenEarly: 90}, 0.9, 0.9},
		// Each computes for 90 and then waits for 10: nothing moved meanwhile, or nearly all.
		{Overlap{Operations: 2, Time: 200, Hidden: 180, Waited: 20}, 0, 0.9},
		// One is complete after 30, and another as above.
		{Overlap{Operations: 2, Early: 1, Time: 130, Hidden: 120, HiddenEarly: 30, Waited: 10}, 0.75, 12.0 / 13},
		{Overlap{Operations: 1, Time: 50, Waited: 50}, 0, 0},
	} {
		if least, most := c.o.Shares(); least != c.least || most != c.most {
			t.Errorf("%+v: %v to %v of the transfer is hidden, want %v to %v", c.o, least, most, c.least, c.most)
		}
	}
}

// TestSameLine has two calls on one line.
func TestSameLine(t *testing.T) {
	var c Counters
	for n := range uint64(2) {
		s := CallSite{Routine: "Send", Site: "a.go:1"}
		s.Set(0, 1+n, 10, 1, 8)
		c.Sites = append(c.Sites, s)
	}
	s := Summarize(&c)
	if len(s.Sites) != 1 || s.Sites[0].Calls != single(3, 0) || s.Sites[0].Messages != 2 {
		t.Errorf("two calls on one line are %+v", s.Sites)
	}
}

func TestParseMaps(t *testing.T) {
	maps := parseMaps(`5581c0000000-5581c0001000 r--p 00000000 fd:01 100 /usr/bin/a b
5581c0001000-5581c0003000 r-xp 00001000 fd:01 100 /usr/bin/a b
7ffc1000-7ffc2000 rw-p 00000000 00:00 0 [stack]
7fff0000-7fff1000 rw-p 00000000 00:00 0
`)
	o := Objects{maps: maps}
	if file, offset := o.Locate(0x5581c0001234); file != "/usr/bin/a b" || offset != 0x1234 || len(maps) != 2 {
		t.Errorf("located %q %#x in %v", file, offset, maps)
	}
	if file, offset := o.Locate(0x7ffc1010); file != "" || offset != 0x7ffc1010 {
		t.Errorf("an address of the stack is located in %q %#x", file, offset)
	}
}

// TestResolve resolves an address of a C program with and without debug information.
func TestResolve(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	if err := os.WriteFile(source, []byte("int work(int x)\n{\n\treturn x + 1;\n}\nint main(void)\n{\n\treturn work(1);\n}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, site string }{{"-g", filepath.Base(dir) + "/a.c:3"}, {"-g0", "a+0x"}} {
		if out, err := exec.Command("gcc", "-O0", c.flag, "-o", program, source).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
		table := readSymbols(program)
		s := Summary{}
		for _, f := range table.funcs {
			if f.Name == "work" {
				for _, p := range table.file.Progs {
					if f.Value >= p.Vaddr && f.Value < p.Vaddr+p.Filesz {
						s.Sites = []CallSite{{Routine: "MPI_Send", Object: program, Offset: f.Value - p.Vaddr + p.Off + f.Size - 2}}
					}
				}
			}
		}
		table.close()
		if len(s.Sites) != 1 {
			t.Fatal("the program has no function work")
		}
		s.Resolve()
		if got := s.Sites[0]; got.Function != "work" || !strings.HasPrefix(got.Site, c.site) && !strings.HasPrefix(got.Site, filepath.Base(dir)+"/a.c:4") || got.Object != "" {
			t.Errorf("with %s the call site is %q in %q, want %s", c.flag, got.Site, got.Function, c.site)
		}
	}
	missing := Summary{Sites: []CallSite{{Routine: "MPI_Send", Object: "/no/such/file", Offset: 16}}}
	if missing.Resolve(); missing.Sites[0].Site != "file+0x10" {
		t.Errorf("a call site in a file that is not there is %q", missing.Sites[0].Site)
	}
}
