package udrel

import "time"

// The progress goroutine does what Poll does while the application computes. Without
// it, acks would be late by that time, and peers would retransmit and finally declare
// this process gone. It runs soon after something arrived, and rarely while nothing
// does.

const (
	// minPause and maxPause bound the pauses of the progress goroutine.
	minPause = 2 * time.Millisecond
	maxPause = 32 * time.Millisecond
	// maxRounds is how often it polls again at once while packets arrive.
	maxRounds = 8
)

// startProgress starts the progress goroutine with the first queue pair.
func (d *Device) startProgress() {
	if d.cfg.NoThread || len(d.pairs) > 0 {
		return
	}
	d.progressDone.Go(func() {
		timer := time.NewTimer(minPause)
		defer timer.Stop()
		pause, seen := minPause, uint(0)
		for {
			select {
			case <-d.closing:
				return
			case <-timer.C:
			}
			d.mu.Lock()
			calls := d.calls
			away := calls == seen && d.parked == 0 && !d.closed
			came := false
			if d.inBackground = away; away {
				for range maxRounds {
					if !d.progress(nil) {
						break
					}
					came = true
				}
			}
			d.inBackground = false
			d.mu.Unlock()
			if seen = calls; came {
				pause = minPause
			} else {
				pause = min(2*pause, maxPause)
			}
			timer.Reset(pause)
		}
	})
}
