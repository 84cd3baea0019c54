package lab

// Test is the part of *testing.T that New uses. It is an interface, so that commands with a
// lab do not link package testing.
type Test interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
	Error(args ...any)
	Cleanup(func())
}

// New creates a lab for the duration of a test. It skips the test, with the reason, if no
// lab can be created.
func New(t Test, cfg Config) *Lab {
	t.Helper()
	if err := Usable(); err != nil {
		t.Skip(err)
	}
	l, err := Create(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Remove(); err != nil {
			t.Error(err)
		}
	})
	return l
}
