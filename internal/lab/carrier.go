package lab

// The kernel reports the carrier of a new interface up to a second after the cable is
// connected. A program that starts before would find its host without a network.

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// awaitCarriers waits until all hosts report all their cables as connected.
func (l *Lab) awaitCarriers() error {
	waiting := l.Hosts()
	for deadline := time.Now().Add(commandTime); ; time.Sleep(5 * time.Millisecond) {
		var err error
		waiting = slices.DeleteFunc(waiting, func(host string) bool {
			ready, e := l.running(host)
			if e != nil {
				err = e
			}
			return ready
		})
		if len(waiting) == 0 || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("lab: the interfaces of %v have no carrier after %v", waiting, commandTime)
		}
	}
}

// running reports whether all interfaces of a host have a carrier.
func (l *Lab) running(host string) (bool, error) {
	answer, err := query("", "ip", "-json", "-n", host, "link", "show")
	if err != nil {
		return false, err
	}
	var links []struct {
		Name  string `json:"ifname"`
		State string `json:"operstate"`
	}
	if err := json.Unmarshal(answer, &links); err != nil {
		return false, fmt.Errorf("lab: decode the output of ip for %s: %w", host, err)
	}
	up := 0
	for _, k := range links {
		for r := range l.cfg.Rails {
			if k.Name == device(r) && k.State == "UP" {
				up++
			}
		}
	}
	return up == l.cfg.Rails, nil
}
