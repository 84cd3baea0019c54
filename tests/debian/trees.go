package main

// Programs that search evolutionary trees: phyml in C, and iqtree2 with the C++ bindings of MPI.

import (
	"os"
	"path/filepath"

	"github.com/muster-mpi/muster/tests/judge"
)

// sequences are six short ones, for which both programs need less than a second.
const sequences = ` 6 60
Alpha     ACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGT
Beta      ACGTACGTACGAACGTACGTACGTACGTACGAACGTACGTACGTACGTACCTACGTACGT
Gamma     ACGTTCGTACGAACGTACGTACTTACGTACGAACGTACGTACGTACGTACCTACGTACCT
Delta     ACGTTCGTACGAACGTACCTACTTACGTACGAACTTACGTACGTACGTACCTACGTACCT
Epsilon   ACCTTCGTACGAACGTACCTACTTAGGTACGAACTTACGTACGTAAGTACCTACGTACCT
Zeta      ACCTTCGTACGAACGTACCTACTTAGGTACGAACTTACGTACGTAAGTACCTACATACCA
`

// trees returns their tests. The likelihoods are those that the programs find on Open MPI.
func (f *family) trees(cache, root string) ([]*judge.Test, error) {
	dir := workFolder(cache, "trees")
	var tests []*judge.Test
	for _, t := range []struct {
		program string
		ranks   int
		args    []string
		right   string
	}{
		{"phyml-mpi", 3, []string{"-b", "6", "--r_seed", "1", "--no_memory_check", "-i"}, `Log likelihood of the current tree: -148\.17\d+`},
		{"iqtree2-mpi", 2, []string{"-m", "JC", "-B", "1000", "-seed", "1", "-redo", "-nt", "1", "-s"}, `BEST SCORE FOUND : -150\.730`},
	} {
		input := filepath.Join(dir, t.program+".phy")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(input, []byte(sequences), 0o644); err != nil {
			return nil, err
		}
		tests = append(tests, &judge.Test{
			ID: "trees/" + t.program + " " + string(rune('0'+t.ranks)), Dir: dir, Program: filepath.Join(root, "usr/bin", t.program),
			Args: append(t.args, input), Ranks: t.ranks, Passed: passIfPrinted(t.right, `(?i)error:.*`),
		})
	}
	return tests, nil
}
