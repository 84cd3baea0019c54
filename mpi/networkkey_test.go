package mpi

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/settings"
)

// withDefaults returns a configuration as join passes it on.
func withDefaults(cfg Config) *Config {
	settings.SetDefaults(&cfg)
	return &cfg
}

// keyedClient is a client with a MUSTER_KEY.
type keyedClient struct {
	pmi.Client
	secret []byte
}

func (c keyedClient) Secret() []byte { return c.secret }

// If only some ranks encrypt, the job fails with an error that names them.
func TestDifferentEncryptionIsReported(t *testing.T) {
	for _, on := range [][]bool{{true, false, true}, {false, true, false}} {
		began := time.Now()
		clients := pmi.NewLocal(len(on))
		errs := make([]error, len(on))
		var wg sync.WaitGroup
		for i := range on {
			wg.Go(func() {
				var lanes []engine.LaneConfig
				lanes, _, errs[i] = openDevices(withDefaults(Config{NoSharedMemory: true, Network: softwareNetwork, Encrypt: on[i]}), clients[i], nil)
				if errs[i] == nil {
					errs[i] = clients[i].Fence(context.Background()) // as ranks do next
				}
				for _, l := range lanes {
					l.Device.Close()
				}
			})
		}
		wg.Wait()
		ours, theirs := &Config{Encrypt: on[1]}, &Config{Encrypt: on[0]}
		for rank, err := range errs {
			for _, want := range []string{"rank 1 on " + clients[1].Host() + " has MUSTER_ENCRYPT=" + settings.OnOff(ours.Encrypt), "rank 0 on " + clients[0].Host() + " has MUSTER_ENCRYPT=" + settings.OnOff(theirs.Encrypt)} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("rank %d must report %q: %v", rank, want, err)
				}
			}
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("it took %v to refuse them", d)
		}
	}
}

// Libfabric does not encrypt: all ranks get an error with a remedy.
func TestLibfabricRefusesToEncrypt(t *testing.T) {
	clients := pmi.NewLocal(2)
	_, err := join(context.Background(), Config{NoSharedMemory: true, Network: "ofi", Encrypt: true}, clients[0], nil)
	for _, want := range []string{"rank 0", "libfabric does not encrypt", "MUSTER_ENCRYPT", "MUSTER_NETWORK=iwarp"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error must say %q: %v", want, err)
		}
	}
	if err := clients[1].Fence(t.Context()); err == nil || !strings.Contains(err.Error(), "MUSTER_NETWORK=iwarp") {
		t.Errorf("the other rank must report it: %v", err)
	}
}

// agreeOnKey lets ranks agree on a network key. A key "" means none.
func agreeOnKey(t *testing.T, secrets ...string) (keys [][]byte, errs []error, published []byte) {
	t.Helper()
	clients := pmi.NewLocal(len(secrets))
	keys, errs = make([][]byte, len(secrets)), make([]error, len(secrets))
	var wg sync.WaitGroup
	for i, s := range secrets {
		c := keyedClient{clients[i], []byte(s)}
		if s == "" {
			c.secret = nil
		}
		wg.Go(func() {
			if keys[i], errs[i] = networkKey(withDefaults(Config{}), c); errs[i] == nil {
				errs[i] = c.Fence(context.Background()) // as ranks do next
			}
		})
	}
	wg.Wait()
	published, err := clients[0].Get(t.Context(), 0, keyName)
	if err != nil && errors.Join(errs...) == nil {
		t.Fatal(err)
	}
	return keys, errs, published
}

// With MUSTER_KEY the network key is derived: no rank publishes it, and another job with the
// same MUSTER_KEY has another one.
func TestTheNetworkKeyIsDerived(t *testing.T) {
	const secret = "a key for these tests"
	first, errs, published := agreeOnKey(t, secret, secret, secret)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if len(first[0]) != keyBytes || !bytes.Equal(first[0], first[1]) || !bytes.Equal(first[0], first[2]) {
		t.Errorf("all ranks must derive one key: %x", first)
	}
	second, _, _ := agreeOnKey(t, secret, secret)
	if bytes.Equal(first[0], second[0]) {
		t.Error("two jobs must not have one key")
	}
	without, errs, plain := agreeOnKey(t, "", "")
	if err := errors.Join(errs...); err != nil || !bytes.Equal(without[0], without[1]) {
		t.Errorf("without MUSTER_KEY ranks agree through the launcher: %x, %v", without, err)
	}
	holds := func(text, key []byte) bool {
		return bytes.Contains(text, key) || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString(key)))
	}
	if holds(published, first[0]) {
		t.Errorf("a derived key is published: %s", published)
	}
	if !holds(plain, without[0]) {
		t.Errorf("this test must find a key that is published: %s", plain)
	}
}

// If ranks have different values of MUSTER_KEY, the job fails with an error that names them.
func TestDifferentKeysAreReported(t *testing.T) {
	const one, two = "a key for these tests", "another key for these tests"
	for name, c := range map[string]struct {
		secrets []string
		want    []string
	}{
		"another": {[]string{one, one, two}, []string{"rank 2 on ", "has a MUSTER_KEY, but rank 0 on ", "has another one"}},
		"none":    {[]string{one, "", one}, []string{"rank 1 on ", "does not have MUSTER_KEY, but rank 0 on "}},
		"only":    {[]string{"", one, ""}, []string{"rank 1 on ", "has MUSTER_KEY, but rank 0 on ", "does not"}},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, errs, _ := agreeOnKey(t, c.secrets...)
			for rank, err := range errs {
				for _, want := range c.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("rank %d must report %q: %v", rank, want, err)
					}
				}
				if err != nil && (strings.Contains(err.Error(), one) || strings.Contains(err.Error(), two)) {
					t.Errorf("an error must not show a key: %v", err)
				}
			}
			if d := time.Since(began); d > 5*time.Second {
				t.Errorf("it took %v to refuse them", d)
			}
		})
	}
}
