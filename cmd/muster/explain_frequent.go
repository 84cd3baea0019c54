package main

// The part of muster explain about short messages that are sent directly from the
// application's buffer: see mpi.Advanced.Frequent.

import (
	"fmt"
	"os"
	"strconv"

	"github.com/muster-mpi/muster/mpi/inspect"
)

func explainFrequent(rows []inspect.BufferCost) {
	if len(rows) == 0 {
		why := "the device sends short messages from any memory, so registration would save no copy"
		if os.Getenv("MUSTER_FREQUENT") == "never" {
			why = "MUSTER_FREQUENT=never"
		}
		fmt.Printf("Buffers: none is registered for short messages: %s.\n", why)
		return
	}
	fmt.Println("Buffers of short messages, puts and gets are copied. Registration pays off after this many uses (measured on this device):")
	fmt.Printf("%12s %12s  %11s %8s %8s %10s  %8s %8s %10s\n", "from bytes", "to", "register ns", "copy", "look up", "(put, get)", "Send", "Isend", "put, get")
	for _, r := range rows {
		fmt.Printf("%12d %12d  %11.0f %8.0f %8.0f %10.0f  %8s %8s %10s\n", r.Lo, r.Hi, r.Register, r.Copy, r.Lookup, r.LookupOneSided,
			timesOrNever(r.Send), timesOrNever(r.Isend), timesOrNever(r.OneSided))
	}
	fmt.Println("A buffer is registered after a quarter of that number. A send from a registered buffer completes when the device no longer needs it.")
}

func timesOrNever(n uint32) string {
	if n == 0 {
		return "never"
	}
	return strconv.FormatUint(uint64(n), 10)
}
