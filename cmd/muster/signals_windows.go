package main

import "os"

// forwardedSignals returns the signals that muster run passes on to the ranks.
func forwardedSignals() []os.Signal { return []os.Signal{os.Interrupt} }
