package muster_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Rules about what makes a failure disappear: repetitions, random numbers without a seed,
// and skipped tests.

// neverRepeated are the targets that have no time limits to excuse a failure.
var neverRepeated = []string{"build", "lint", "soak", "fuzz", "cross"}

var (
	stepLine    = regexp.MustCompile(`(?m)^(step|timed_step) '([^']+)' (\S+) (.+)$`)
	stepLimit   = regexp.MustCompile(`^[0-9]+m$`)
	makeCommand = regexp.MustCompile(`^make ([\w-]+)`)
)

// stepFaults returns what is wrong with the marks of the steps of .ci/run.
func stepFaults(script string) (faults []string) {
	run := map[string]bool{}
	for _, m := range stepLine.FindAllStringSubmatch(script, -1) {
		mark, title, command := m[1], m[2], m[4]
		if !stepLimit.MatchString(m[3]) {
			faults = append(faults, fmt.Sprintf("step %q has no time limit in minutes", title))
		}
		target := makeCommand.FindStringSubmatch(command)
		if target == nil {
			if mark != "step" {
				faults = append(faults, fmt.Sprintf("step %q is repeated, and is no target of the Makefile", title))
			}
			continue
		}
		run[target[1]] = true
		if mark != "step" && slices.Contains(neverRepeated, target[1]) {
			faults = append(faults, fmt.Sprintf("step %q is repeated: a failure of make %s is not one of time limits", title, target[1]))
		}
	}
	for _, target := range neverRepeated {
		if !run[target] {
			faults = append(faults, "no step runs make "+target)
		}
	}
	if strings.Contains(script, "|| true") || strings.Contains(script, "for attempt") {
		faults = append(faults, "the script ignores a failure or repeats a command by itself")
	}
	return faults
}

func TestStepsOfCI(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range stepFaults(string(script)) {
		t.Errorf(".ci/run: %s", fault)
	}
	for _, target := range neverRepeated {
		wrong := regexp.MustCompile(`(?m)^step ('[^']+' \S+ make `+target+`\b)`).ReplaceAllString(string(script), "timed_step $1")
		if len(stepFaults(wrong)) != 1 {
			t.Errorf("make %s as a timed_step is not noticed", target)
		}
	}
}

// TestOnlyTimedStepsAreRepeated runs the functions of the script with commands that fail.
func TestOnlyTimedStepsAreRepeated(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	for _, c := range []struct {
		step     string
		failures int // of the command, before it succeeds
		stays    int // seconds for which it runs then; the limit is 1 s
		runs     int
		ok       bool
		prints   string
	}{
		{"step", 0, 0, 1, true, "=== all passed"},
		{"step", 1, 0, 1, false, "=== FAILED: it"},
		{"timed_step", 0, 0, 1, true, "=== all passed"},
		{"timed_step", 1, 0, 2, true, "=== passed only when repeated: it: TestX"},
		{"timed_step", 2, 0, 2, false, "=== FAILED: it, once more"},
		{"step", 0, 60, 1, false, "=== it: ended, because it took longer than 1s"},
		{"timed_step", 0, 60, 1, false, "=== it: ended, because it took longer than 1s"},
	} {
		dir := t.TempDir()
		runs := filepath.Join(dir, "runs")
		script := fmt.Sprintf(`set -euo pipefail
. .ci/steps.sh
step_log=%[5]s/log
command() { echo run >>%[1]s; [ "$(wc -l <%[1]s)" -gt %[2]d ] || { echo "--- FAIL: TestX (0.1s)"; return 1; }; sleep %[4]d; }
export -f command
%[3]s it 1s command
report`, runs, c.failures, c.step, c.stays, dir)
		out, err := exec.Command(bash, "-c", script).CombinedOutput()
		ran, _ := os.ReadFile(runs)
		if n := strings.Count(string(ran), "run"); n != c.runs || (err == nil) != c.ok || !strings.Contains(string(out), c.prints) {
			t.Errorf("%s of a command that fails %d times runs it %d times (%v), want %d and %q:\n%s", c.step, c.failures, n, err, c.runs, c.prints, out)
		}
	}
}

// seedless are the functions of math/rand that use its own, random seed.
func seedless(name string) bool { return !strings.HasPrefix(name, "New") && ast.IsExported(name) }

// randTypes are the types of math/rand.
var randTypes = []string{"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf"}

// openSkip matches the reason of a skip that is to be temporary.
var openSkip = regexp.MustCompile(`\b(yet|for now|not reached|broken|flaky|known|limitation|bug|defect|TODO)\b`)

func TestRandomNumbersOfTestsHaveSeeds(t *testing.T) {
	for _, fault := range testFaults(surface()) {
		t.Error(fault)
	}
}

// TestNightGoesOn runs the functions of the nightly script with steps that fail.
func TestNightGoesOn(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	for _, c := range []struct {
		steps, wanted string // status and name of each; the names of those that are to run
		ok            bool
		prints, page  string
	}{
		{"0 a 0 b", "", true, "=== 0 of 2 steps failed", "| b | ok |"},
		{"1 a 0 b", "", false, "=== 1 of 2 steps failed", "## a\n\nFailed: TestX"},
		{"1 a 0 b", "b", true, "=== 0 of 1 steps failed", "| b | ok |"},
		{"0 skipped: 0 b", "", true, "=== 0 of 2 steps failed", "| skipped: | skipped |"},
	} {
		dir := t.TempDir()
		script := fmt.Sprintf(`set -euo pipefail
. .ci/steps.sh
. .ci/night.sh
night=%[1]s
command() { echo "$2 --- FAIL: TestX (0.1s)"; echo "--- FAIL: TestX (0.1s)"; return $1; }
export -f command
set -- %[2]s
while [ $# -gt 0 ]; do night_step $2 5s command $1 $2; shift 2; done
night_report %[1]s %[1]s/page.md`, dir, c.steps)
		out, err := exec.Command(bash, append([]string{"-c", script, "night"}, strings.Fields(c.wanted)...)...).CombinedOutput()
		page, _ := os.ReadFile(filepath.Join(dir, "page.md"))
		if (err == nil) != c.ok || !strings.Contains(string(out), c.prints) || !strings.Contains(string(page), c.page) {
			t.Errorf("steps %q of %q (%v), want %q and %q:\n%s\n%s", c.steps, c.wanted, err, c.prints, c.page, out, page)
		}
	}
}

func TestSkipsAndSeedsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"import \"math/rand/v2\"\nvar x = rand.New(rand.NewPCG(1, 2))\nvar y *rand.Rand\n": "",
		"import \"math/rand/v2\"\nvar x = rand.IntN(2)\n":                                  "a_test.go:3: rand.IntN has no seed: use internal/seeded, which logs it",
		"import \"math/rand\"\nvar f = rand.Float64\n":                                     "a_test.go:3: rand.Float64 has no seed: use internal/seeded, which logs it",
		"func f(t T) { t.Skip(\"needs root\") }\n":                                         "",
		"func f(t T) { t.Skip(\"not reached yet\") }\n":                                    "a_test.go:2: this test is skipped because of a defect or a limitation: say until when",
		"func f(t T) { t.Skipf(\"broken until Go %d\", 2) }\n":                             "",
	} {
		h := &house{fset: token.NewFileSet(), folders: map[string][]*source{}}
		h.parse("a_test.go", []byte("package a\n"+text))
		if got := strings.Join(testFaults(h), "; "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// testFaults returns the random numbers of tests that have no seed, and the skipped tests
// that do not say until when.
func testFaults(h *house) (faults []string) {
	for _, files := range h.folders {
		for _, s := range files {
			if !s.test {
				continue
			}
			random := false
			for _, imp := range s.file.Imports {
				random = random || imp.Path.Value == `"math/rand"` || imp.Path.Value == `"math/rand/v2"`
			}
			ast.Inspect(s.file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					x, ok := n.X.(*ast.Ident)
					if ok && random && x.Name == "rand" && seedless(n.Sel.Name) && !slices.Contains(randTypes, n.Sel.Name) {
						faults = append(faults, fmt.Sprintf("%s: rand.%s has no seed: use internal/seeded, which logs it", h.at(n), n.Sel.Name))
					}
				case *ast.CallExpr:
					if why := skipReason(n); openSkip.MatchString(why) && !strings.Contains(why, "until") {
						faults = append(faults, fmt.Sprintf("%s: this test is skipped because of a defect or a limitation: say until when", h.at(n)))
					}
				}
				return true
			})
		}
	}
	slices.Sort(faults)
	return faults
}

// skipReason returns the text of a call of Skip or Skipf, or "".
func skipReason(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 || sel.Sel.Name != "Skip" && sel.Sel.Name != "Skipf" {
		return ""
	}
	if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			return text
		}
	}
	return ""
}
