// Package pin locks the pages of registered memory, for software devices in strict
// mode: there registration costs what it costs on an adapter, whose memory may not be
// swapped.
package pin
