package udrel

import "time"

// The attendant: a goroutine that does what Poll does while the program computes. Without
// it, receipts would be late by as long as that takes, peers would repeat what has come,
// and give up in the end. It looks again soon after something came, and seldom while
// nothing does.

const (
	// soon and seldom are the pauses of the attendant.
	soon   = 2 * time.Millisecond
	seldom = 32 * time.Millisecond
	// rounds is how often it looks again at once, while something comes.
	rounds = 8
)

// attend starts the attendant with the first queue pair.
func (d *Device) attend() {
	if d.cfg.NoThread || len(d.pairs) > 0 {
		return
	}
	d.attended.Go(func() {
		timer := time.NewTimer(soon)
		defer timer.Stop()
		pause, seen := soon, uint(0)
		for {
			select {
			case <-d.over:
				return
			case <-timer.C:
			}
			d.mu.Lock()
			calls := d.calls
			away := calls == seen && d.parked == 0 && !d.closed
			came := false
			if d.attending = away; away {
				for range rounds {
					if !d.progress(nil) {
						break
					}
					came = true
				}
			}
			d.attending = false
			d.mu.Unlock()
			if seen = calls; came {
				pause = soon
			} else {
				pause = min(2*pause, seldom)
			}
			timer.Reset(pause)
		}
	})
}
