package mpi

// The network key, which all ranks of a job share and no one else has: software iWARP
// authenticates its packets with it, and encrypts them if Config.Encrypt is set. Rank 0
// draws a nonce and publishes it.
//
//   - If MUSTER_KEY is set, with or without a launcher, the key is derived from that and
//     the nonce (HKDF, RFC 5869). It never leaves a rank.
//   - Otherwise the nonce is the key. It is as secret as the transport of PMI: package pmi and
//     docs/reference/security.md describe that for each launcher.

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/settings"
)

const (
	keyName    = "muster-network-key"
	keyBytes   = 32
	keyPurpose = "muster/1 network key"
	// checkPurpose is for a value that shows whether two ranks have derived the same key.
	checkPurpose = "muster/1 network key check"
)

// networkTerms is what rank 0 publishes, and what all ranks must agree on.
type networkTerms struct {
	Host    string
	Encrypt string // Config.Encrypt
	Nonce   []byte
	Derived bool   // the key is derived from MUSTER_KEY
	Check   []byte `json:",omitempty"` // of a derived key
}

// networkKey agrees with all ranks on the key. A rank that cannot agree ends the job.
func networkKey(cfg *Config, client pmi.Client) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), cfg.StartTimeout)
	defer cancel()
	if client.Rank() == 0 {
		if err := publishTerms(cfg, client); err != nil {
			return nil, fmt.Errorf("publish the terms of the network: %w", err)
		}
	}
	if err := client.Fence(pmi.InStage(ctx, "terms of the network")); err != nil {
		return nil, fmt.Errorf("wait for the terms of the network: %w", err)
	}
	text, err := client.Get(ctx, 0, keyName)
	if err != nil {
		return nil, fmt.Errorf("fetch the terms of the network from rank 0: %w", err)
	}
	var terms networkTerms
	if err := json.Unmarshal(text, &terms); err != nil || len(terms.Nonce) != keyBytes {
		return nil, errors.New("rank 0 has published terms of the network that this rank cannot read; use one version of Muster for all ranks")
	}
	key, err := terms.accept(cfg, client)
	if err != nil {
		endJob(client, err)
	}
	return key, err
}

// endJob ends the job when this rank refuses its settings, because the others would wait
// for it.
func endJob(client pmi.Client, why error) {
	if client.AbortReports() {
		client.Abort(1, why.Error())
	}
}

func publishTerms(cfg *Config, client pmi.Client) error {
	terms := networkTerms{Host: client.Host(), Encrypt: settings.OnOff(cfg.Encrypt), Nonce: make([]byte, keyBytes)}
	rand.Read(terms.Nonce) // never fails: crypto/rand
	if secret := client.Secret(); secret != nil {
		_, check, err := deriveKey(secret, terms.Nonce)
		if err != nil {
			return err
		}
		terms.Derived, terms.Check = true, check
	}
	text, err := json.Marshal(&terms)
	if err != nil {
		return err
	}
	return client.Put(keyName, text)
}

// deriveKey derives the key, and a value that identifies it.
func deriveKey(secret, nonce []byte) (key, check []byte, err error) {
	if key, err = hkdf.Key(sha256.New, secret, nonce, keyPurpose, keyBytes); err == nil {
		check, err = hkdf.Key(sha256.New, secret, nonce, checkPurpose, keyBytes)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("derive the key of the network from MUSTER_KEY: %w", err)
	}
	return key, check, nil
}

// accept returns the key, or an error that names the setting in which this rank differs
// from rank 0.
func (t *networkTerms) accept(cfg *Config, client pmi.Client) ([]byte, error) {
	secret := client.Secret()
	differ := func(ours, theirs string) error {
		return fmt.Errorf("rank %d on %s %s, but rank 0 on %s %s; give all ranks the same", client.Rank(), client.Host(), ours, t.Host, theirs)
	}
	switch ours := settings.OnOff(cfg.Encrypt); {
	case ours != t.Encrypt:
		return nil, differ("has MUSTER_ENCRYPT="+ours, "has MUSTER_ENCRYPT="+t.Encrypt)
	case secret != nil && !t.Derived:
		return nil, differ("has MUSTER_KEY", "does not")
	case secret == nil && t.Derived:
		return nil, differ("does not have MUSTER_KEY", "does")
	case secret == nil:
		return t.Nonce, nil
	}
	key, check, err := deriveKey(secret, t.Nonce)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(check, t.Check) {
		return nil, differ("has a MUSTER_KEY", "has another one")
	}
	return key, nil
}
