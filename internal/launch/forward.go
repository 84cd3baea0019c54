package launch

// Signals that the launcher gets and forwards to the ranks.

import (
	"syscall"
	"time"
)

// forwarded remembers them.
type forwarded struct {
	interrupted, quit time.Time // the first SIGINT, and the last SIGQUIT that printed a report
	last              syscall.Signal
}

// interruptsAgain notes a SIGINT and reports whether it is the second.
func (f *forwarded) interruptsAgain(now time.Time) bool {
	if f.interrupted.IsZero() {
		f.interrupted = now
	}
	return now.Sub(f.interrupted) > sameKeystroke
}

// quitsAgain notes a SIGQUIT and reports whether it is the second in a row.
func (f *forwarded) quitsAgain(now time.Time) bool {
	again := now.Sub(f.quit) <= 2*time.Second
	if !again {
		f.quit = now
	}
	return again
}

// signal forwards a signal to the ranks. The second SIGINT kills them, because a program
// may handle the first. SIGQUIT prints the report; only a second one in a row is
// forwarded, which makes Go programs print their stacks.
func (j *job) signal(sig syscall.Signal) {
	j.takeAll()
	if j.ranks.pending > 0 && (sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP) {
		j.ranks.pending = 0
		j.outcome.fail(-1, "the start was interrupted by "+signalName(sig), 128+int(sig))
		j.endNow()
		return
	}
	switch sig {
	case syscall.SIGINT:
		if j.forwarded.interruptsAgain(time.Now()) {
			j.outcome.fail(-1, "interrupted twice", 128+int(sig))
			j.ending.asked = true
			j.endNow()
			return
		}
	case syscall.SIGQUIT:
		if !j.forwarded.quitsAgain(time.Now()) {
			j.reportWaits(nil, func(bool) string {
				return "which rank waits for which (a second SIGQUIT within 2 s is forwarded to the ranks):"
			})
			return
		}
	case sigTstp:
		// Stop together with the ranks. SIGCONT is forwarded to them when it arrives;
		// it cannot be sent from here, because this thread may run on for a moment.
		j.backend.signalAll(sigStop)
		stopSelf()
		return
	}
	j.forwarded.last = sig
	j.log.Info("signal forwarded", "signal", signalName(sig))
	j.backend.signalAll(sig)
}

// sameKeystroke is the time within which two SIGINT count as one: commands such as
// timeout send it to the launcher and then to its process group.
const sameKeystroke = 100 * time.Millisecond
