//go:build !linux

package lab

import "errors"

func startRelay(string, int, Relay) (func(), error) {
	return nil, errors.New("lab: this system has no network namespaces; use Linux")
}
