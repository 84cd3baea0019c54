package soft

// Polling implements rdma.PollingCQ.
func (w *waits) Polling(on bool) {
	if on {
		w.dev.Thread.polling.Add(1)
	} else {
		w.dev.Thread.polling.Add(-1)
	}
}
