package launch

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseNodeList(t *testing.T) {
	for list, want := range map[string]string{
		"a":                   "a",
		"a,b.some.domain":     "a b.some.domain",
		"n[1-3]":              "n1 n2 n3",
		"n[08-11,3]":          "n08 n09 n10 n11 n3",
		"a,n[1,3],z":          "a n1 n3 z",
		"r[1-2]n[1-2]":        "r1n1 r1n2 r2n1 r2n2",
		"n[1-2]-ib,":          "n1-ib n2-ib",
		"n[4294967295]":       "n4294967295",
		"rack[7]x,rack[8]y":   "rack7x rack8y",
		"cn[0098-0101]a,last": "cn0098a cn0099a cn0100a cn0101a last",
	} {
		got, err := ParseNodeList(list)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q is %s, got %v, %v", list, want, got, err)
		}
	}
	for list, want := range map[string]string{
		"": "no hosts", ",": "no hosts", "n[1-3": "no closing bracket", "n1]": "without an opening one", "n[3-1]": "invalid numbers [3-1]",
		"n[]": "invalid numbers []", "n[a]": "invalid numbers", "n[1-65537]": "more than 65536 hosts", "a[0-999]b[0-999]": "more than 65536 hosts",
		"n[1-40000],m[1-40000]": "more than 65536 hosts", "-x": "begins with '-'", "a;b": "contains ';'", "n[1]$": "contains '$'",
		"n[[1]]": "invalid numbers",
	} {
		if _, err := ParseNodeList(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q must be rejected with %q: %v", list, want, err)
		}
	}
}

func FuzzNodeList(f *testing.F) {
	for _, s := range []string{"a", "n[1-3]", "r[1-2]n[08-11,3],z", "n[", "]", "[1]", "a[0-9]b[0-9]c[0-9]", ",,", "n[1-99999999]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		names, err := ParseNodeList(list)
		if err != nil {
			return
		}
		if len(names) == 0 || len(names) > maxHosts {
			t.Fatalf("%q has %d hosts", list, len(names))
		}
		for _, name := range names {
			if err := checkHostName(name); err != nil {
				t.Fatalf("%q has a host that a remote shell must not get: %v", list, err)
			}
		}
		// The expanded list needs no brackets and means the same.
		again, err := ParseNodeList(strings.Join(names, ","))
		if err != nil || !slices.Equal(again, names) {
			t.Fatalf("%q has the hosts %.200q; written out they are %.200q, %v", list, names, again, err)
		}
	})
}

func TestAllocation(t *testing.T) {
	for _, c := range []struct {
		what string
		env  map[string]string
		want []Host
		from string
		err  string
	}{
		{"no batch system", nil, nil, "", ""},
		{"Slurm with tasks", map[string]string{"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "4(x2),3", "SLURM_JOB_CPUS_PER_NODE": "8(x3)"},
			[]Host{{"n1", 4}, {"n2", 4}, {"n3", 3}}, "SLURM_JOB_NODELIST", ""},
		{"Slurm with CPUs", map[string]string{"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_CPUS_PER_NODE": "8,16"}, []Host{{"n1", 8}, {"n2", 16}}, "SLURM_JOB_NODELIST", ""},
		{"Slurm without counts", map[string]string{"SLURM_JOB_NODELIST": "a,b"}, []Host{{"a", 0}, {"b", 0}}, "SLURM_JOB_NODELIST", ""},
		{"a step of Slurm on one of its hosts", map[string]string{"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "1", "SLURM_JOB_CPUS_PER_NODE": "8(x2)"},
			[]Host{{"n1", 8}, {"n2", 8}}, "SLURM_JOB_NODELIST", ""},
		{"too few counts of both", map[string]string{"SLURM_JOB_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "4", "SLURM_JOB_CPUS_PER_NODE": "8"}, nil, "SLURM_JOB_NODELIST", "8 are for 1 of 2 hosts"},
		{"too few counts", map[string]string{"SLURM_JOB_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "4"}, nil, "SLURM_JOB_NODELIST", "4 are for 1 of 2 hosts"},
		{"too many counts", map[string]string{"SLURM_JOB_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "4(x99999999)"}, nil, "SLURM_JOB_NODELIST", "more than 2 hosts"},
		{"bad counts", map[string]string{"SLURM_JOB_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "4(x2"}, nil, "SLURM_JOB_NODELIST", "use counts such as"},
		{"bad list", map[string]string{"SLURM_JOB_NODELIST": "a["}, nil, "SLURM_JOB_NODELIST", "no closing bracket"},
		{"PBS", map[string]string{"PBS_NODEFILE": "nodes"}, []Host{{"a", 2}, {"b", 1}}, "PBS_NODEFILE", ""},
		{"PBS without the file", map[string]string{"PBS_NODEFILE": "none"}, nil, "PBS_NODEFILE", "not exist"},
	} {
		read := func(path string) ([]byte, error) {
			if path == "nodes" {
				return []byte("a\na\nb\n"), nil
			}
			return nil, os.ErrNotExist
		}
		got, from, err := Allocation(func(name string) string { return c.env[name] }, read)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || from != c.from {
			t.Errorf("%s: from %q, error %v; want %q, %q", c.what, from, err, c.from, c.err)
		}
		if c.err == "" && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
	if _, _, err := Allocation(func(string) string { return "x" }, nil); errors.Is(err, os.ErrNotExist) {
		t.Error("Slurm's variable comes first")
	}
}
