//go:build !((pmix || cabi) && cgo && linux)

package pmix

import (
	"errors"
	"time"
)

// Built reports whether this program was built with PMIx.
const Built = false

// Session is a connection to the local PMIx server. This build has none.
type Session struct{}

var errNotBuilt = errors.New("pmix: this program was built without PMIx; build it with -tags pmix (cgo)")

// Open returns an error: this build has no PMIx.
func Open() (*Session, error) { return nil, errNotBuilt }

func (*Session) Namespace() string                  { return "" }
func (*Session) Rank() int                          { return 0 }
func (*Session) Put(string, []byte) error           { return errNotBuilt }
func (*Session) Fence(time.Duration) error          { return errNotBuilt }
func (*Session) JobNumber(string) (int, bool)       { return 0, false }
func (*Session) JobText(string) (string, bool)      { return "", false }
func (*Session) RankNumber(int, string) (int, bool) { return 0, false }
func (*Session) Abort(int, string)                  {}
func (*Session) Close() error                       { return errNotBuilt }
func (*Session) Get(int, string, time.Duration) ([]byte, bool, error) {
	return nil, false, errNotBuilt
}
