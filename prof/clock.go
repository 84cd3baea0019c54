package prof

// The clock of a rank.

import "time"

// Clock returns times in ns that can be compared between ranks. Clocks of the same domain
// are one clock; the offset between others must be measured ([Offset]).
type Clock struct {
	begin  time.Time
	at     int64 // at begin
	domain string
}

// NewClock returns the monotonic clock of this machine.
func NewClock() *Clock {
	begin, at, domain := machineClock()
	return &Clock{begin: begin, at: at, domain: domain}
}

// Now returns the time. It makes no system call where the runtime makes none.
func (c *Clock) Now() int64 { return c.at + int64(time.Since(c.begin)) }

// Domain identifies the clock: processes with the same domain share it. The domain is
// that of the running kernel, so containers and network namespaces share it; "" means
// that the clock is private to this process.
func (c *Clock) Domain() string { return c.domain }

// WithOffset returns a clock that is ahead of c and private to this process, like that of
// another machine. It is for tests.
func (c *Clock) WithOffset(by time.Duration) *Clock {
	return &Clock{begin: c.begin, at: c.at + int64(by)}
}
