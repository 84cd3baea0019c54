package npb

import (
	"math"
	"strings"
	"testing"
)

// TestSkip compares a jump in the sequence with single steps.
func TestSkip(t *testing.T) {
	steps, jump := Random(Seed), Random(Seed)
	out := make([]float64, 1000)
	steps.Fill(out[:999])
	out[999] = steps.Next()
	jump.Skip(1000)
	if steps != jump {
		t.Errorf("after 1000 numbers the sequence is at %d, after Skip(1000) at %d", steps, jump)
	}
	one := Random(Seed)
	for i, want := range out {
		if got := one.Next(); got != want || got <= 0 || got >= 1 {
			t.Fatalf("number %d is %v by Next and %v by Fill", i, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		check Check
		ok    bool
	}{
		{Check{Got: 1, Want: 1}, true},
		{Check{Got: 1 + 1e-9, Want: 1}, false},
		{Check{Got: 1 + 1e-9, Want: 1, Tolerance: 1e-8}, true},
		{Check{Got: 1e-9, Want: 0, Tolerance: 1e-8}, true},
		{Check{Got: math.NaN(), Want: 1, Tolerance: 1e-8}, false},
		{Check{Got: math.Inf(1), Want: 1, Tolerance: 1e-8}, false},
	} {
		if got := test.check.OK(); got != test.ok {
			t.Errorf("%+v: OK is %v, want %v", test.check, got, test.ok)
		}
	}
}

func TestString(t *testing.T) {
	r := Result{
		Name: "CG", Class: 'S', Size: "1400", Iterations: 15, Operation: "floating point", Operations: 4e6,
		Ranks: 2, Seconds: 2, InMPI: 0.5, Checks: []Check{{Name: "zeta", Got: 8.5, Want: 8.5, Tolerance: 1e-10}},
	}
	for _, want := range []string{
		" CG Benchmark Completed.\n",
		" Class           =                        S\n",
		" Time in seconds =                    2.000\n",
		" Mop/s total     =                     2.00\n",
		" Mop/s/process   =                     1.00\n",
		" Verification    =               SUCCESSFUL\n",
	} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("no line %q in\n%s", want, r.String())
		}
	}
	r.Checks[0].Got = 8.6
	if want := " Verification    =             UNSUCCESSFUL\n"; !strings.Contains(r.String(), want) {
		t.Errorf("no line %q in\n%s", want, r.String())
	}
}

func TestClass(t *testing.T) {
	table := map[byte]int{'S': 1, 'A': 2}
	if n, err := Class(table, 'A'); n != 2 || err != nil {
		t.Errorf("class A is %d (%v), want 2", n, err)
	}
	if _, err := Class(table, 'X'); err == nil || !strings.Contains(err.Error(), "A, S") {
		t.Errorf("the error for class X is %v; want one that lists A, S", err)
	}
}
