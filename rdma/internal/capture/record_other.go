//go:build !linux

package capture

import "net/netip"

// Recorder requires Linux.
type Recorder struct{}

// Record returns ErrNoRights: it requires Linux.
func Record(string, netip.Addr) (*Recorder, error) { return nil, ErrNoRights }

// Stop is never called: there is no recorder.
func (*Recorder) Stop() ([]Frame, error) { return nil, ErrNoRights }
