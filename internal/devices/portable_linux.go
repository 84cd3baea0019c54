//go:build !muster_portable

package devices

const portable = false
