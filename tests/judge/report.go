package judge

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// readPasses returns the tests that must pass.
func readPasses(path string) (ids []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			ids = append(ids, line)
		}
	}
	return ids, nil
}

// writePasses replaces the entries of the tests that were run by those that passed.
func writePasses(path, suite string, must []string, results []*result) error {
	ids := map[string]bool{}
	for _, id := range must {
		ids[id] = true
	}
	for _, r := range results {
		if !r.skipped {
			ids[r.test.ID] = r.muster.ok
		}
	}
	var list []string
	for id, in := range ids {
		if in {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	name, flags, library := suite, "", "libmpich.so.12"
	if base, ok := strings.CutSuffix(suite, ofOpenMPI); ok {
		name, flags, library = base, "-openmpi ", "libmpi.so.40"
	}
	head := fmt.Sprintf("# The tests that must pass on Muster's %s (make test-%s).\n# To add those that pass now: make test-%s %s='%s-all -update'\n",
		library, name, name, strings.ToUpper(name), flags)
	return os.WriteFile(path, []byte(head+"\n"+strings.Join(list, "\n")+"\n"), 0o644)
}

// regressions returns the results of tests that must pass and do not.
func regressions(results []*result, must []string) (lost []*result) {
	for _, r := range results {
		if !r.skipped && !r.muster.ok && slices.Contains(must, r.test.ID) {
			lost = append(lost, r)
		}
	}
	return lost
}

// report returns a table by folder and the lists of tests that fail.
func report(o *options, results []*result, must []string) string {
	var b strings.Builder
	type row struct{ tests, run, muster, mpich int }
	rows := map[string]*row{"all": {}}
	var names []string
	for _, r := range results {
		top := r.test.top()
		if rows[top] == nil {
			rows[top] = &row{}
			names = append(names, top)
		}
		for _, sum := range []*row{rows[top], rows["all"]} {
			sum.tests++
			sum.run += count(!r.skipped)
			sum.muster += count(r.muster.ok)
			sum.mpich += count(r.mpich.ok)
		}
	}
	column := func(n int, shown bool) string {
		if !shown {
			return ""
		}
		return fmt.Sprintf(" %d |", n)
	}
	b.WriteString("| folder | tests | run | Muster |")
	if o.reference {
		b.WriteString(" MPICH |")
	}
	b.WriteString("\n| --- | ---: | ---: | ---: |")
	if o.reference {
		b.WriteString(" ---: |")
	}
	b.WriteString("\n")
	for _, name := range append(names, "all") {
		r := rows[name]
		fmt.Fprintf(&b, "| %s | %d | %d | %d |%s\n", name, r.tests, r.run, r.muster, column(r.mpich, o.reference))
	}
	group := func(title string, in func(*result) bool) {
		var lines strings.Builder
		count := 0
		for _, r := range results {
			if r.skipped || !in(r) {
				continue
			}
			count++
			fmt.Fprintf(&lines, "- `%s`", r.test.ID)
			if !r.muster.ok {
				fmt.Fprintf(&lines, ": %s", r.muster.why)
			}
			if o.reference && !r.mpich.ok {
				fmt.Fprintf(&lines, " (MPICH: %s)", r.mpich.why)
			}
			lines.WriteString("\n")
			if o.verbose && !r.muster.ok {
				lines.WriteString(indent(r.muster.out))
			}
		}
		if count > 0 {
			fmt.Fprintf(&b, "\n%s: %d\n\n%s", title, count, lines.String())
		}
	}
	lost := func(r *result) bool { return !r.muster.ok && slices.Contains(must, r.test.ID) }
	group("Must pass and fail", lost)
	if o.reference {
		group("Pass on MPICH only", func(r *result) bool { return r.mpich.ok && !r.muster.ok })
		group("Pass on Muster only", func(r *result) bool { return r.muster.ok && !r.mpich.ok })
		group("Fail on both", func(r *result) bool { return !r.muster.ok && !r.mpich.ok })
	} else {
		group("Fail", func(r *result) bool { return !r.muster.ok && !lost(r) })
	}
	return b.String()
}

func count(v bool) int {
	if v {
		return 1
	}
	return 0
}

// indent returns the last lines of an output, for a report.
func indent(out string) string {
	const show = 8
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	return "      " + strings.Join(lines[max(0, len(lines)-show):], "\n      ") + "\n"
}
