package pmix

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The declarations of abi.h against the installed headers of PMIx: a program with the constants
// and the layout of both must compile.
func TestBinaryInterface(t *testing.T) {
	flags, err := exec.Command("pkg-config", "--cflags", "pmix").Output()
	if err != nil {
		t.Skip("the headers of PMIx are not installed (Debian packages pkg-config and libpmix-dev)")
	}
	ours, err := os.ReadFile("abi.h")
	if err != nil {
		t.Fatal(err)
	}
	program := "#include <pmix.h>\n#include <stddef.h>\n"
	constants := regexp.MustCompile(`\b(PMIX_\w+) = (-?\d+)`).FindAllStringSubmatch(string(ours), -1)
	for _, c := range constants {
		program += "_Static_assert(" + c[1] + " == " + c[2] + ", \"\");\n"
	}
	if len(constants) < 10 {
		t.Fatalf("abi.h has %d constants", len(constants))
	}
	for _, key := range regexp.MustCompile(`#define (PMIX_\w+)\s+("pmix[.\w]+")`).FindAllStringSubmatch(string(ours), -1) {
		program += "_Static_assert(__builtin_strcmp(" + key[1] + ", " + key[2] + ") == 0, \"\");\n"
	}
	// Our types have other names in this program.
	renamed := regexp.MustCompile(`\bpmix_(proc|value|info|scope|status)_t\b`).ReplaceAllString(string(ours), "our_${1}_t")
	renamed = regexp.MustCompile(`(?s)enum \{.*?\};`).ReplaceAllString(renamed, "")
	renamed = regexp.MustCompile(`(?m)^#define PMIX_.*$`).ReplaceAllString(renamed, "")
	program += renamed
	for _, name := range []string{"proc", "value", "info", "scope", "status"} {
		program += "_Static_assert(sizeof(our_" + name + "_t) == sizeof(pmix_" + name + "_t), \"\");\n"
	}
	for _, field := range []string{"proc_t, rank", "value_t, data", "value_t, data.bo.size", "info_t, flags", "info_t, value"} {
		program += "_Static_assert(offsetof(our_" + field + ") == offsetof(pmix_" + field + "), \"\");\n"
	}
	file := filepath.Join(t.TempDir(), "program.c")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(string(flags)), "-fsyntax-only", file)
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Errorf("abi.h differs from the headers of PMIx: %v\n%s", err, out)
	}
}
