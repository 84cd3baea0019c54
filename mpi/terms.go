package mpi

// What all ranks must have in common: the version of the library, and the settings with
// the tag agree. Muster's launcher compares them when a rank joins (internal/pmi,
// terms.go). Under other launchers every value that a rank publishes carries its terms,
// and who fetches the value compares them. Neither costs a message.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/settings"
)

// Values of the tag agree.
const (
	agreeValue = "value" // the ranks need the same value
	agreeFile  = "file"  // they need files with the same content; names may differ
	agreeSet   = "set"   // all ranks set it, or none; only rank 0 uses the value
)

// terms returns what a rank with this configuration declares.
func (c *Config) terms() pmi.Terms {
	t := pmi.Terms{Protocol: protocol, Version: recordedVersion()}
	for _, f := range settings.Fields(c) {
		value := ""
		switch text := f.Text(); f.Tag.Get("agree") {
		case agreeFile:
			value = fileDigest(text)
		case agreeSet:
			value = "a file"
		case agreeValue:
			if value = shortText(text); text == f.Default() {
				continue // a rank may set the value that another has by default
			}
		}
		if value != "" && !f.Value.IsZero() {
			t.Settings = append(t.Settings, pmi.Setting{Name: f.Env(), Value: value})
		}
	}
	return t
}

// fileDigest identifies the content of a file. One that cannot be read is an error later.
func fileDigest(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return "a file that cannot be read"
	}
	return "a file with digest " + digest(text)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// shortText keeps the declaration short: launchers limit the length of a line.
func shortText(s string) string {
	const most = 64
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` {
		s = quoted // it contains a newline or such
	}
	if len(s) > most {
		s = s[:most] + "... (digest " + digest([]byte(s)) + ")"
	}
	return s
}

// declaringClient is the client of a launcher that does not compare terms.
type declaringClient struct {
	pmi.Client
	terms string
}

// declaring returns a client that compares the terms of ranks.
func declaring(c pmi.Client, t pmi.Terms) pmi.Client {
	if c.Compared() {
		return c
	}
	return &declaringClient{c, t.Text()}
}

// Put prefixes a value with the host and the terms of this rank.
func (c *declaringClient) Put(key string, val []byte) error {
	var b []byte
	for _, s := range []string{c.Host(), c.terms} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return c.Client.Put(key, append(b, val...))
}

func (c *declaringClient) Get(ctx context.Context, rank int, key string) ([]byte, error) {
	b, err := c.Client.Get(ctx, rank, key)
	if err != nil {
		return nil, err
	}
	other := pmi.Party{Rank: rank}
	for _, s := range []*string{&other.Host, &other.Terms} {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return nil, fmt.Errorf("mpi: rank %d has published a value of %q that this rank cannot read; use one version of Muster for all ranks", rank, key)
		}
		*s, b = string(b[k:k+int(n)]), b[k+int(n):]
	}
	if why := pmi.Differ(pmi.Party{Rank: c.Rank(), Host: c.Host(), Terms: c.terms}, other); why != "" {
		err := errors.New("mpi: " + why)
		endJob(c, err)
		return nil, err
	}
	return b, nil
}
