package prof

// A clock by which ranks can be compared.

import "time"

// Clock tells the time in ns. Clocks of one domain are one clock, whoever reads them;
// how far others are apart must be measured ([Offset]).
type Clock struct {
	begin  time.Time
	at     int64 // at begin
	domain string
}

// NewClock begins to read the monotonic clock of this machine.
func NewClock() *Clock {
	begin, at, domain := machineClock()
	return &Clock{begin: begin, at: at, domain: domain}
}

// Now is the time. It makes no system call where the runtime makes none.
func (c *Clock) Now() int64 { return c.at + int64(time.Since(c.begin)) }

// Domain says with whom this clock is shared: with all who have the same. It is that of
// the running kernel, and so also that of containers and network namespaces; "" is
// nobody's but this process's.
func (c *Clock) Domain() string { return c.domain }

// Ahead is a clock that shows a later time than c and is shared with nobody, as that of
// another machine. It is for tests.
func (c *Clock) Ahead(by time.Duration) *Clock {
	return &Clock{begin: c.begin, at: c.at + int64(by)}
}
