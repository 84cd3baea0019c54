package apps

import (
	"strings"
	"testing"
)

func TestAppsAreListedOnceWithClassS(t *testing.T) {
	seen := map[string]bool{}
	for _, app := range All() {
		if seen[app.Name] || app.Name != strings.ToLower(app.Name) || app.Summary == "" || app.Run == nil {
			t.Errorf("%+v: the name must be new and in lower case, and nothing missing", app)
		}
		if !strings.HasPrefix(app.Classes, "S") {
			t.Errorf("%s has the classes %q; S, the default, must be the first", app.Name, app.Classes)
		}
		seen[app.Name] = true
	}
}
