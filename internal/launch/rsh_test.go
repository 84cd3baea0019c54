//go:build !windows

package launch

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseRSH(t *testing.T) {
	for template, want := range map[string][]string{
		`ssh {host}`:                {"ssh", "{host}"},
		`  ip  netns exec	{host} `:  {"ip", "netns", "exec", "{host}"},
		`sh -c 'exec "$@"' sh`:      {"sh", "-c", `exec "$@"`, "sh"},
		`a "b c" d\ e "f\"g" 'h'i`:  {"a", "b c", "d e", `f"g`, "hi"},
		`x "" ''`:                   {"x", "", ""},
		`x "\n" '\n' \n`:            {"x", `\n`, `\n`, "n"},
		`docker exec -i {host}-pod`: {"docker", "exec", "-i", "{host}-pod"},
	} {
		if got, err := ParseRSH(template); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %q, and was split into %q, %v", template, want, got, err)
		}
	}
	for template, want := range map[string]string{"": "is empty", "  ": "is empty", `a 'b`: "not closed", `a "b`: "not closed", `a \`: "backslash", `'' b`: "is empty"} {
		if got, err := ParseRSH(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q must be rejected with %q: %q, %v", template, want, got, err)
		}
	}
}

func TestRSHWords(t *testing.T) {
	for _, c := range []struct {
		template string
		command  string
		want     []string
	}{
		{"ip netns exec {host}", "/opt/my tools/muster", []string{"ip", "netns", "exec", "h1", "/opt/my tools/muster", "agent"}},
		{"ssh", "/bin/muster", []string{"ssh", "h1", "/bin/muster", "agent"}},
		{"/usr/bin/ssh -p 22 {host}", "/opt/my tools/muster", []string{"/usr/bin/ssh", "-p", "22", "h1", "'/opt/my tools/muster'", "agent"}},
		{"kubectl exec -i pod-{host} --", "muster", []string{"kubectl", "exec", "-i", "pod-h1", "--", "muster", "agent"}},
	} {
		template, err := ParseRSH(c.template)
		if err != nil {
			t.Fatal(err)
		}
		if got := rshWords(template, "h1", c.command, "agent"); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q for h1 is %q, not %q", c.template, c.want, got)
		}
	}
	if got := quoteWord("it's"); got != `'it'\''s'` {
		t.Errorf("a quote within quotes: %s", got)
	}
}
