//go:build (pmix || cabi) && cgo && linux

package pmix

// A session is one C structure with the function pointers of the library. Every method is
// one call into C, which may block the thread.

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
	"unsafe"
)

// Built reports whether this program was built with PMIx.
const Built = true

// Session is a connection to the local PMIx server. A process has one. It may be used from
// several goroutines.
type Session struct {
	s *C.muster_pmix

	mu    sync.RWMutex // held for reading by calls, so that Close waits for them
	ended bool
}

var errEnded = errors.New("pmix: the session is closed")

// wholeJob is the rank that stands for the whole job.
const wholeJob = math.MaxUint32 - 1

// Open loads the library and connects to the server given by the environment.
func Open() (*Session, error) {
	var why *C.char
	s := C.muster_pmix_open(&why)
	if s == nil {
		defer C.free(unsafe.Pointer(why))
		return nil, fmt.Errorf("pmix: %s", C.GoString(why))
	}
	return &Session{s: s}, nil
}

// Namespace returns the job's name.
func (s *Session) Namespace() string { return C.GoString(C.muster_pmix_namespace(s.s)) }

// Rank returns the rank of this process in the job.
func (s *Session) Rank() int { return int(C.muster_pmix_rank(s.s)) }

// Put publishes a value to all ranks.
func (s *Session) Put(key string, val []byte) error {
	k := C.CString(key)
	defer C.free(unsafe.Pointer(k))
	return s.call("PMIx_Put "+key, func() C.int {
		return C.muster_pmix_put(s.s, k, unsafe.Pointer(unsafe.SliceData(val)), C.size_t(len(val)))
	})
}

// Fence returns when all ranks have called it. A limit of 0 means no limit.
func (s *Session) Fence(limit time.Duration) error {
	return s.call("PMIx_Fence", func() C.int { return C.muster_pmix_fence(s.s, seconds(limit)) })
}

// Get returns a value that a rank has put, or false if there is none. The server may wait
// for it, up to the limit.
func (s *Session) Get(rank int, key string, limit time.Duration) ([]byte, bool, error) {
	k := C.CString(key)
	defer C.free(unsafe.Pointer(k))
	var (
		bytes unsafe.Pointer
		n     C.size_t
		rc    C.int
	)
	err := s.call(fmt.Sprintf("PMIx_Get %s of rank %d", key, rank), func() C.int {
		rc = C.muster_pmix_get(s.s, C.uint32_t(rank), k, seconds(limit), &bytes, &n)
		return rc
	})
	switch {
	case rc == C.PMIX_ERR_NOT_FOUND || rc == C.PMIX_ERR_TIMEOUT:
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	defer C.free(bytes)
	return C.GoBytes(bytes, C.int(n)), true, nil
}

// JobNumber returns a numeric attribute of the job, such as "pmix.job.size".
func (s *Session) JobNumber(key string) (int, bool) { return s.RankNumber(wholeJob, key) }

// RankNumber returns a numeric attribute of a rank, such as "pmix.nodeid".
func (s *Session) RankNumber(rank int, key string) (int, bool) {
	k := C.CString(key)
	defer C.free(unsafe.Pointer(k))
	var n C.uint64_t
	err := s.call("PMIx_Get "+key, func() C.int { return C.muster_pmix_number(s.s, C.uint32_t(rank), k, &n) })
	return int(n), err == nil
}

// JobText returns a text attribute of the job, such as "pmix.lpeers".
func (s *Session) JobText(key string) (string, bool) {
	k := C.CString(key)
	defer C.free(unsafe.Pointer(k))
	var text *C.char
	err := s.call("PMIx_Get "+key, func() C.int { return C.muster_pmix_text(s.s, wholeJob, k, &text) })
	if err != nil {
		return "", false
	}
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text), true
}

// Abort requests that the launcher end the job.
func (s *Session) Abort(code int, why string) {
	w := C.CString(why)
	defer C.free(unsafe.Pointer(w))
	s.call("PMIx_Abort", func() C.int { return C.muster_pmix_abort(s.s, C.int(code), w) })
}

// Close disconnects from the server.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	s.ended = true
	if rc := C.muster_pmix_close(s.s); rc != C.PMIX_SUCCESS {
		return fmt.Errorf("pmix: PMIx_Finalize returned status %d", int(rc))
	}
	return nil
}

func (s *Session) call(what string, fn func() C.int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.ended {
		return errEnded
	}
	if rc := fn(); rc != C.PMIX_SUCCESS {
		return fmt.Errorf("pmix: %s: %s", what, C.GoString(C.muster_pmix_error(s.s, rc)))
	}
	return nil
}

// seconds converts a limit to the unit of PMIx, rounding up so that it stays a limit.
func seconds(d time.Duration) C.int {
	if d <= 0 {
		return 0
	}
	return C.int(min((d+time.Second-1)/time.Second, math.MaxInt32))
}
