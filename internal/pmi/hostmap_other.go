//go:build !linux

package pmi

import (
	"fmt"
	"os"
)

// memoryDomain identifies the processes that can share memory. Without containers it
// consists of the host and the user.
func memoryDomain() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s %d", host, os.Geteuid())
}

// networkDomain is unknown: processes dial the other addresses of this host.
func networkDomain() string { return "" }
