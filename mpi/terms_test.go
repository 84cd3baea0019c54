package mpi

import "testing"

// A rank may set explicitly what another has by default; a value is named as users set it.
func TestTermsOmitDefaults(t *testing.T) {
	terms := func(environ ...string) string {
		cfg, err := ConfigFromEnv(environ)
		if err != nil {
			t.Fatal(err)
		}
		t := cfg.terms()
		return t.Text()
	}
	none := terms()
	for _, setting := range []string{"MUSTER_CHANNEL=hybrid", "MUSTER_CREDIT=8388608", "MUSTER_CREDIT=8M", "MUSTER_CHECK=off", "MUSTER_NO_SHARED_MEMORY=false"} {
		if got := terms(setting); got != none {
			t.Errorf("%s is the default, but the terms are %q, not %q", setting, got, none)
		}
	}
	for setting, want := range map[string]string{
		"MUSTER_CHANNEL=ud": "MUSTER_CHANNEL=ud", "MUSTER_CREDIT=1M": "MUSTER_CREDIT=1048576", "MUSTER_CHECK=1": "MUSTER_CHECK=on",
		"MUSTER_NO_SHARED_MEMORY=1": "MUSTER_NO_SHARED_MEMORY=on", "MUSTER_COLLECTIVE=allreduce=ring": "MUSTER_COLLECTIVE=allreduce=ring",
	} {
		if got := terms(setting); got != none+"\n"+want {
			t.Errorf("the terms with %s are %q, want %q at the end", setting, got, want)
		}
	}
}
