package launch

import (
	"slices"
	"testing"
)

// Of equal errors the first is printed. Other lines, and the same error of the same rank, are
// printed as they come.
func TestEqualErrorsAreFolded(t *testing.T) {
	var f folds
	for _, c := range []struct {
		rank       int
		text, want string
	}{
		{3, "hello\n", "hello\n"},
		{3, "a\nmuster: rank 3: mpi: Barrier: rank 2 has died\nb\n", "a\nmuster: rank 3: mpi: Barrier: rank 2 has died\nb\n"},
		{0, "a\nmuster: rank 0: mpi: Barrier: rank 2 has died\nb\n", "a\nb\n"},
		{1, "muster: rank 1: mpi: Barrier: rank 2 has died\n", ""},
		{3, "muster: rank 3: mpi: Barrier: rank 2 has died\n", "muster: rank 3: mpi: Barrier: rank 2 has died\n"},
		{4, "muster: rank 4: another\n", "muster: rank 4: another\n"},
		{5, "muster: rank 4: another\n", "muster: rank 4: another\n"}, // of a program, not of mpi.Main
		{9, "muster: rank 9: mpi: Barrier: rank 2 has died\n", ""},
		{8, "muster: rank 8: another\n", ""},
	} {
		if got := string(f.rest(c.rank, []byte(c.text))); got != c.want {
			t.Errorf("rank %d prints %q; of this %q is shown, want %q", c.rank, c.text, got, c.want)
		}
	}
	want := []string{"ranks 0-1,9 have the same error as rank 3", "rank 8 has the same error as rank 4"}
	if got := f.lines(); !slices.Equal(got, want) {
		t.Errorf("the report is %q, want %q", got, want)
	}
}
