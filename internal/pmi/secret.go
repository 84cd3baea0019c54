package pmi

// The secret of a job: MUSTER_KEY. Without a launcher it lets ranks in; under any
// launcher it may be set too, and then the keys of the network are derived from it
// instead of passing through the launcher.

import "fmt"

const (
	// minKey is the fewest characters of a key. Whoever records a proof of
	// handshake.go can try keys against it as fast as he can compute HMACs.
	minKey = 16
	// placeholderKey stood in examples/kubernetes/job.yaml, of which there are copies.
	placeholderKey = "change-me-before-use"
)

// checkSecret refuses keys that are easy to guess. The error does not show the key.
func checkSecret(key string) error {
	const advice = "make one with: openssl rand -hex 32"
	switch {
	case key == placeholderKey:
		return fmt.Errorf("pmi: %s is the placeholder of the example, which everybody knows; %s", EnvKey, advice)
	case len(key) < minKey:
		return fmt.Errorf("pmi: %s has %d characters, but needs at least %d to be hard to guess; %s", EnvKey, len(key), minKey, advice)
	}
	return nil
}

// readSecret gives the key of a job that has a launcher; nil: it has none.
func readSecret(getenv func(string) string) ([]byte, error) {
	key := getenv(EnvKey)
	if key == "" {
		return nil, nil
	}
	return []byte(key), checkSecret(key)
}
