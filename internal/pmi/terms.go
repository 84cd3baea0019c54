package pmi

// The terms of a job: the version of the library and the settings that all ranks must
// have in common. A rank sends them with init, the first line of PMI-1, so the comparison
// costs no message. Muster's server compares them and confirms that in its answer. Other
// launchers ignore the fields; then the caller compares by other means (Client.Compared).

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Terms is what a rank declares. The zero value declares nothing, as another MPI library
// or a version of Muster before the terms does.
type Terms struct {
	// Protocol is the version of everything that ranks exchange.
	Protocol int
	// Version is that of the library, "" if the program does not record it.
	Version string
	// Settings are the settings that must agree and are not at their defaults, in a fixed
	// order.
	Settings []Setting
}

// Setting is a setting and its value. Neither contains a newline.
type Setting struct{ Name, Value string }

// OnFailure is the setting of a job that survives failures, if its value is OnFailureReturn.
const (
	OnFailure       = "MUSTER_ON_FAILURE"
	OnFailureReturn = "return"
)

// Survives reports whether the job is to continue when a rank fails.
func (t *Terms) Survives() bool { return t.value(OnFailure) == OnFailureReturn }

// Fields of the init message and its answer. Values are in base64, because they may
// contain spaces.
const (
	fieldTerms = "muster_terms"
	fieldHost  = "muster_host"
	compared   = "compared"
)

// Text returns the terms as one text, which ReadTerms reads.
func (t *Terms) Text() string {
	if t.Protocol == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(strconv.Itoa(t.Protocol) + "\n" + t.Version)
	for _, s := range t.Settings {
		b.WriteString("\n" + s.Name + "=" + s.Value)
	}
	return b.String()
}

// ReadTerms reads terms. Of a text that it cannot read it returns the protocol 0.
func ReadTerms(text string) (t Terms) {
	lines := strings.Split(text, "\n")
	var err error
	if t.Protocol, err = strconv.Atoi(lines[0]); err != nil || len(lines) < 2 {
		return Terms{}
	}
	t.Version = lines[1]
	for _, l := range lines[2:] {
		name, value, _ := strings.Cut(l, "=")
		t.Settings = append(t.Settings, Setting{name, value})
	}
	return t
}

// Party is a rank with its terms.
type Party struct {
	Rank  int
	Host  string
	Terms string // of Terms.Text
}

func (p *Party) name() string {
	if p.Host == "" {
		return fmt.Sprintf("rank %d", p.Rank)
	}
	return fmt.Sprintf("rank %d on %s", p.Rank, p.Host)
}

// Differ returns a sentence that names the first difference between the terms of two
// ranks, or "" if they can run in one job.
func Differ(a, b Party) string {
	if a.Terms == b.Terms {
		return ""
	}
	x, y := ReadTerms(a.Terms), ReadTerms(b.Terms)
	if !x.runsWith(&y) {
		return fmt.Sprintf("%s runs %s, but %s runs %s; build the programs of all ranks with one version of Muster",
			b.name(), y.library(), a.name(), x.library())
	}
	if name, is, was, differ := x.setting(&y); differ {
		return fmt.Sprintf("%s has %s, but %s has %s; give all ranks the same value",
			b.name(), assignment(name, was), a.name(), assignment(name, is))
	}
	return ""
}

// runsWith reports whether two versions can run in one job (decision 070): they have the
// same protocol, and they are releases or the same build. A program may not record its
// version; the protocol alone counts then.
func (t *Terms) runsWith(o *Terms) bool {
	if t.Protocol != o.Protocol {
		return false
	}
	return t.Version == o.Version || t.Version == "" || o.Version == "" || isRelease(t.Version) && isRelease(o.Version)
}

// isRelease reports whether a version has the form v1.2.3.
func isRelease(version string) bool {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 32); err != nil {
			return false
		}
	}
	return len(parts) == 3
}

func (t *Terms) library() string {
	switch {
	case t.Protocol == 0:
		return "another MPI library, or a version of Muster that does not declare itself"
	case t.Version == "":
		return fmt.Sprintf("Muster of an unknown version (protocol %d)", t.Protocol)
	}
	return fmt.Sprintf("Muster %s (protocol %d)", t.Version, t.Protocol)
}

// setting returns the first setting that differs, with both values.
func (t *Terms) setting(o *Terms) (name, mine, theirs string, differ bool) {
	for _, s := range append(t.Settings[:len(t.Settings):len(t.Settings)], o.Settings...) {
		if mine, theirs = t.value(s.Name), o.value(s.Name); mine != theirs {
			return s.Name, mine, theirs, true
		}
	}
	return "", "", "", false
}

func (t *Terms) value(name string) string {
	for _, s := range t.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

func assignment(name, value string) string {
	if value == "" {
		return "the default of " + name
	}
	return name + "=" + value
}

// joinedTwice describes two processes that share the connection of a rank, because a
// script has started both with its environment and descriptors.
func joinedTwice(p *Party) string {
	return p.name() + " has joined the job twice: two processes, or two calls of Init, use its connection to the launcher; start one program of the job for each rank"
}

// compare compares the terms of a rank with those of the first rank. It reports the
// first difference as an event, once, and returns false then.
func (s *Server) compare(p Party) bool {
	s.mu.Lock()
	if s.first == nil {
		s.first = &p
	}
	why := Differ(*s.first, p)
	again := s.differ
	s.differ = s.differ || why != ""
	s.mu.Unlock()
	if why != "" && !again {
		s.notify(Event{Rank: p.Rank, Phase: PhaseJoined, Refused: why})
	}
	return why == ""
}

// readTermsOf returns the terms in the init message of a rank of this server. The server
// knows the host of a rank that declares nothing.
func readTermsOf(rank int, m *message) Party {
	terms, _ := valueCode.DecodeString(m.get(fieldTerms))
	host, _ := valueCode.DecodeString(m.get(fieldHost))
	p := Party{Rank: rank, Host: string(host), Terms: string(terms)}
	if p.Host == "" {
		p.Host, _ = os.Hostname()
	}
	return p
}
