package lab

// Test is what New needs of a *testing.T. It is an interface of its own so that
// commands with a lab do not contain package testing.
type Test interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
	Error(args ...any)
	Cleanup(func())
}

// New makes a lab that lasts as long as the test. The test is skipped, with
// the reason, where no lab can be had.
func New(t Test, cfg Config) *Lab {
	t.Helper()
	if err := Usable(); err != nil {
		t.Skip(err)
	}
	l, err := Up(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}
