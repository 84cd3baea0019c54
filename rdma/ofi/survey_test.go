//go:build ofi && cgo && linux

package ofi

import (
	"slices"
	"testing"
)

// TestSurveyMatchesOpen queries libfabric of this host.
func TestSurveyMatchesOpen(t *testing.T) {
	for _, cfg := range []Config{{Interface: "lo"}, {Provider: "tcp;ofi_rxm", Interface: "127.0.0.1"}} {
		list, version, err := Survey(cfg)
		if err != nil || version == "" {
			t.Fatalf("Survey(%+v): version %q, %v", cfg, version, err)
		}
		i := slices.IndexFunc(list, func(o Offer) bool { return o.Taken })
		if i < 0 {
			t.Fatalf("Survey(%+v) uses none of %d offers", cfg, len(list))
		}
		d, err := Open(cfg)
		if err != nil {
			t.Fatalf("Open(%+v): %v", cfg, err)
		}
		o := list[i]
		if got := d.Attr().Name; got != "ofi:"+o.Provider || o.Interface != "lo" || o.Endpoint != "RDM" || o.Wait != "fd" {
			t.Errorf("Survey(%+v) takes %+v, Open %s", cfg, o, got)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		for _, o := range list {
			if o.Reason == "" {
				t.Errorf("%s %s on %s has no reason", o.Provider, o.Endpoint, o.Interface)
			}
		}
	}
}
