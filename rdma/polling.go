package rdma

// PollingCQ is a CQ of a device that has a progress thread of its own. The thread services
// the device when the application seems to compute. An application that waits for a message
// seems to do so too, while it waits for its turn on a shared core between two polls.
type PollingCQ interface {
	CQ
	// Polling(true) declares that the caller polls until Polling(false): the progress
	// thread leaves the work to it. It must be serialized with Poll.
	Polling(on bool)
}
