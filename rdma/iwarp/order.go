//go:build !race

package iwarp

// The race detector, when enabled, is informed of the order of sending and receiving.

func orderBeforeSending()  {}
func orderAfterReceiving() {}
