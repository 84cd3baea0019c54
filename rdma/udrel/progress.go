package udrel

import "time"

// The progress goroutine: a goroutine that does what Poll does while the program computes. Without
// it, acks would be late by as long as that takes, peers would repeat what has come,
// and give up in the end. It looks again soon after something came, and seldom while
// nothing does.

const (
	// soon and seldom are the pauses of the progress goroutine.
	minPause = 2 * time.Millisecond
	maxPause = 32 * time.Millisecond
	// rounds is how often it looks again at once, while something comes.
	maxRounds = 8
)

// attend starts the progress goroutine with the first queue pair.
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
