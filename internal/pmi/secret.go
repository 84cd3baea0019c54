package pmi

// The secret of a job: MUSTER_KEY. Without a launcher it authenticates the ranks. It may
// also be set under a launcher; the keys of the network are then derived from it instead
// of being distributed by the launcher.

import "fmt"

const (
	// minKey is the minimum length of a key. An attacker who records a proof of
	// handshake.go can test keys against it as fast as HMACs can be computed.
	minKey = 16
	// placeholderKey was in examples/kubernetes/job.yaml, and copies of it may exist.
	placeholderKey = "change-me-before-use"
)

// checkSecret rejects keys that are easy to guess. The error does not contain the key.
func checkSecret(key string) error {
	const advice = "generate one with: openssl rand -hex 32"
	switch {
	case key == placeholderKey:
		return fmt.Errorf("pmi: %s is the placeholder of the example, which is public; %s", EnvKey, advice)
	case len(key) < minKey:
		return fmt.Errorf("pmi: %s has %d characters, but needs at least %d to be hard to guess; %s", EnvKey, len(key), minKey, advice)
	}
	return nil
}

// readSecret returns the key of a job with a launcher, or nil if there is none.
func readSecret(getenv func(string) string) ([]byte, error) {
	key := getenv(EnvKey)
	if key == "" {
		return nil, nil
	}
	return []byte(key), checkSecret(key)
}
