//go:build !windows

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func TestInfo(t *testing.T) {
	var out bytes.Buffer
	if err := showInfo(&out, []string{"HOME=/x", "MUSTER_CHANNEL=rd"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`(?m)^version +\S`, `MUSTER_CHANNEL +rd +environment +hybrid`, `MUSTER_CHECK +off +default +off`, `MUSTER_SPIN +- +default +1000, 20 while`, `(?m)^shm +(yes|no; needs Linux)`, `(?m)^rc +yes`, `MUSTER_CREDIT +8388608 +default +8388608`, `(?m)^ofi +(yes|no; build with -tags ofi)`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output must match %q:\n%s", want, &out)
		}
	}
	if err := showInfo(&out, []string{"MUSTER_CHANEL=rd"}); err == nil || !strings.Contains(err.Error(), "MUSTER_CHANNEL") {
		t.Errorf("a misspelt setting must be an error: %v", err)
	}
}
