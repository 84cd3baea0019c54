package pmi

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTermsThatDiffer(t *testing.T) {
	settings := []Setting{{"MUSTER_COLLECTIVE", "allreduce=ring"}}
	for name, c := range map[string]struct {
		a, b Terms
		want []string // none: they can run in one job
	}{
		"same":               {Terms{1, "v1.0.0", settings}, Terms{1, "v1.0.0", settings}, nil},
		"two releases":       {Terms{1, "v1.0.0", nil}, Terms{1, "v1.2.0", nil}, nil},
		"one version absent": {Terms{1, "v1.0.0", nil}, Terms{1, "", nil}, nil},
		"nothing declared":   {Terms{}, Terms{}, nil},
		"protocol":           {Terms{1, "v1.0.0", nil}, Terms{2, "v2.0.0", nil}, []string{"rank 3 on b runs Muster v2.0.0 (protocol 2)", "rank 0 on a runs Muster v1.0.0 (protocol 1)", "one version of Muster"}},
		"two commits":        {Terms{1, "v1.0.1-0.2026-abc", nil}, Terms{1, "v1.0.1-0.2026-def", nil}, []string{"2026-abc", "2026-def"}},
		"not declared":       {Terms{1, "v1.0.0", nil}, Terms{}, []string{"rank 3 on b runs another MPI library, or a version of Muster that"}},
		"setting":            {Terms{1, "", settings}, Terms{1, "", nil}, []string{"rank 3 on b has the default of MUSTER_COLLECTIVE", "rank 0 on a has MUSTER_COLLECTIVE=allreduce=ring"}},
		"another setting":    {Terms{1, "", settings}, Terms{1, "", []Setting{{"MUSTER_CREDIT", "5"}}}, []string{"MUSTER_COLLECTIVE"}},
	} {
		got := Differ(Party{0, "a", c.a.Text()}, Party{3, "b", c.b.Text()})
		if (got != "") != (c.want != nil) {
			t.Errorf("%s: %q", name, got)
		}
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s must contain %q: %s", name, w, got)
			}
		}
	}
}

// Without a launcher, all ranks learn the difference at once.
func TestTermsWithoutLauncher(t *testing.T) {
	root := freePort(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	began := time.Now()
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for rank := range errs {
		terms := Terms{Protocol: 1, Version: "v1.0.0"}
		if rank == 1 {
			terms = Terms{Protocol: 2, Version: "v2.0.0"}
		}
		wg.Go(func() {
			c, err := Open(ctx, env(staticEnv(rank, len(errs), root, goodKey)), terms)
			if err == nil {
				err = c.Fence(ctx)
			}
			errs[rank] = err
		})
	}
	wg.Wait()
	for rank, err := range errs {
		wantError(t, "rank "+string(rune('0'+rank)), err, "Muster v1.0.0 (protocol 1)", "rank 1 on ", "Muster v2.0.0 (protocol 2)")
	}
	if took := time.Since(began); took > startTimeout/2 {
		t.Errorf("it took %v: the ranks have waited for a timeout", took)
	}
}
