//go:build !linux || muster_portable

package devices

// portable reports whether only the devices for all systems are available (decision 072).
const portable = true
