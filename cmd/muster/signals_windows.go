package main

import "os"

// forwarded returns the signals that muster run passes on to the ranks.
func forwarded() []os.Signal { return []os.Signal{os.Interrupt} }
