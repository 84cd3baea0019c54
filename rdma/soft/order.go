//go:build !race

package soft

// Only the race detector needs to be informed about the order of sending and receiving.

func (*Device) orderBeforeSending()  {}
func (*Device) orderAfterReceiving() {}

// toRepeat returns what to send for a retransmission.
func toRepeat(bytes []byte) []byte { return bytes }
