package muster_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// One vocabulary: where MPI, RDMA, IP networking or Go have a word for a thing, the
// tree uses that word, in names, comments, pages, help and errors. docs/glossary.md
// defines the few terms that are our own. This test fails on words that the tree
// once used instead.

var wordsUnder = flag.String("words.under", "", "check the vocabulary of this folder only")

// word is a term to avoid. Identifiers are split into words before they are
// compared, so that "host told" also finds hostTold.
type word struct {
	not  string // a regular expression of lower-case words
	but  string
	okay string // what may stand although not matches: a regular expression
	why  string // the reason for okay
	// key is the word of a phrase by which wordFinder finds its lines; default: not.
	key string
	// names says that only identifiers and file names are meant: in prose the word
	// is plain English.
	names bool
	under string // only in this folder
}

var words = []word{
	{not: `deput\w*`, but: "progress thread"},
	{not: `attend\w*`, but: "progress thread, progress, drive, service"},
	{not: `stands? in`, key: `stands?`, but: "replace"},
	{not: `on duty`, key: `duty`, but: "progress thread"},
	{not: `receipts?`, but: "ack"},
	{not: `ow(e|es|ed|ing)`, but: "pending", okay: `owing to`, why: "because of"},
	{not: `flights?`, but: "send window", okay: `in flight`, why: "RFC 9002's term for sent and not acked"},
	{not: `hangars?`, but: "window pool"},
	{not: `stash\w*|unstash\w*`, but: "reorder buffer"},
	{not: `sightings?`, but: "receive history"},
	{not: `verdicts?`, but: "classification, result"},
	{not: `tend(s|ed|ing)?`, but: "service", okay: `tends? to`, why: "plain English"},
	{not: `hearken\w*`, but: "receive"},
	{not: `lulls?`, but: "idle polls"},
	{not: `restless\w*`, but: "next timer"},
	{not: `pump\w*`, but: "flush"},
	{not: `occup(y|ies|ied)`, but: "reserve", names: true},
	{not: `patien(ce|t|tly)`, but: "timeout, RTO"},
	{not: `life|lives`, but: "incarnation", okay: `game of life|examples 06 life|06 life|life cycle|package life|lives (in|on)`, why: "Conway's game, and plain English"},
	{not: `throw\w*|threw`, but: "send datagram", okay: `errors throw exceptions`, why: "a variable of Open MPI"},
	{not: `catch(es|ing)?|caught`, but: "receive datagram", names: true},
	{not: `bereft`, but: "failed"},
	{not: `griev\w*|grief`, but: "record loss"},
	{not: `mourn\w*`, but: "loss recorded"},
	{not: `mates?`, but: "peer"},
	{not: `purses?`, but: "credit pool"},
	{not: `pots?`, but: "reserve"},
	{not: `doors?`, but: "listener"},
	{not: `bells?`, but: "event fd, wake-up"},
	{not: `prompt(s|ed|ly)?`, but: "pacing, at once"},
	{not: `crowd\w*`, but: "arrivals, oversubscribed"},
	{not: `who (has )?arrived`, key: `arrived`, but: "arrival tracker"},
	{not: `habits?`, but: "speculation history"},
	{not: `news`, but: "arrival notice"},
	{not: `moves?|moved|moving`, but: "one-sided transfer", names: true, under: "internal/p2p"},
	{not: `whereabouts`, but: "host mapping"},
	{not: `last words?`, key: `words?`, but: "exit report"},
	{not: `octets?`, but: "bytes"},
	{not: `places?`, but: "displacement, offset, index", names: true, okay: `(not )?in place`, why: "MPI_IN_PLACE"},
	{not: `that cannot be`, key: `cannot`, but: "invalid", okay: `that cannot be \w`, why: "a verb follows: that cannot be read"},
	{not: `dear(er|est)?`, but: "expensive"},
	{not: `cheap\w*`, but: "inexpensive"},
	{not: `to be had`, key: `had`, but: "available"},
	{not: `loose`, but: "unordered"},
	{not: `turns?`, but: "time slice", names: true},
	{not: `(take|takes|took|taking|in|by|its|whose|their|a|each|every) turns?`, key: `turns?`, but: "time slice, alternate", okay: `in turn|a turn of`, why: "plain English"},
	{not: `tells?|told|telling|says?|said|knows? of|known of`, key: `tells?|told|telling|says?|said|knows?|known`, but: "report, document, support", names: true},
	{not: `tells? (whether|if|how|what|which|who|where|when|why)`, key: `tells?`, but: "reports whether (the Go convention)"},
	{not: `neighbour\w*`, but: "neighbor (MPI's spelling)"},
}

// wordless are files that hold words to avoid for a reason.
var wordless = map[string]string{
	"house_words_test.go": "lists them",
	"house_shape_test.go": "lists participles",
	"CHANGELOG.md":        "names what was renamed",
}

func TestVocabulary(t *testing.T) {
	faults := checkWords(os.DirFS("."), *wordsUnder)
	for _, fault := range faults {
		t.Error(fault)
	}
	if len(faults) > 0 {
		t.Errorf("%d words that the field has other terms for; see docs/glossary.md", len(faults))
	}
}

func TestVocabularyFindsWords(t *testing.T) {
	for text, want := range map[string]int{
		"package a\n\nfunc hostTold() {}\n":                 1,
		"package a\n\n// The host was told of it.\n":        0,
		"package a\n\n// A receipt for each message.\n":     1,
		"package a\n\nvar bytesInFlight, shortFlight int\n": 1,
		"package a\n\n// IsSet tells whether it is set.\n":  1,
		"package a\n\nvar x = \"an octet\"\n":               1,
		"package a\n\nvar inPlace, place int\n":             1,
	} {
		if got := newWordFinder().wordsIn("a.go", []byte(text)); len(got) != want {
			t.Errorf("%q: found %q, want %d", text, got, want)
		}
	}
}

// wordFinder finds most lines without a word to avoid by looking up their words, each of
// which is compared with the table once. The regular expressions would take a minute for
// the whole tree.
type wordFinder struct {
	keys *regexp.Regexp
	seen map[string]bool // whether a word is a key
}

func newWordFinder() *wordFinder {
	var all []string
	for _, w := range words {
		all = append(all, cmp.Or(w.key, w.not))
	}
	return &wordFinder{regexp.MustCompile(`^(` + strings.Join(all, "|") + `)$`), map[string]bool{}}
}

// mayHold reports whether a line of splitWords has the key of a word to avoid.
func (f *wordFinder) mayHold(line string) bool {
	for len(line) > 0 {
		n := 0
		for n < len(line) && (line[n] >= 'a' && line[n] <= 'z' || line[n] >= '0' && line[n] <= '9') {
			n++
		}
		if n > 0 {
			key, ok := f.seen[line[:n]]
			if !ok {
				key = f.keys.MatchString(line[:n])
				f.seen[strings.Clone(line[:n])] = key
			}
			if key {
				return true
			}
		}
		line = line[min(n+1, len(line)):]
	}
	return false
}

var compiledWords = func() (list []struct{ not, okay *regexp.Regexp }) {
	for _, w := range words {
		c := struct{ not, okay *regexp.Regexp }{not: regexp.MustCompile(`\b(` + w.not + `)\b`)}
		if w.okay != "" {
			c.okay = regexp.MustCompile(`\b(` + w.okay + `)`)
		}
		list = append(list, c)
	}
	return list
}()

func checkWords(tree fs.FS, under string) (faults []string) {
	finder := newWordFinder()
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (p != "." && strings.HasPrefix(d.Name(), ".") && p != ".ci" || p == "bin"):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || wordless[p] != "" || under != "" && p != under && !strings.HasPrefix(p, under+"/"):
			return nil
		}
		text, err := fs.ReadFile(tree, p)
		if err != nil || bytes.IndexByte(text, 0) >= 0 || path.Base(p) == "go.sum" {
			return err
		}
		faults = append(faults, finder.wordsIn(p, text)...)
		return nil
	})
	if err != nil {
		faults = append(faults, err.Error())
	}
	return faults
}

// wordsIn returns the words to avoid in a file: in its name, its lines and, if it
// is Go, its identifiers.
func (f *wordFinder) wordsIn(p string, text []byte) (faults []string) {
	find := func(number int, line string, name bool) {
		split := splitWords(line)
		if !f.mayHold(split) {
			return
		}
		for i, w := range words {
			if w.names != name || w.under != "" && !strings.HasPrefix(p, w.under) {
				continue
			}
			c := compiledWords[i]
			rest := split
			if c.okay != nil {
				rest = c.okay.ReplaceAllString(split, "~")
			}
			if m := c.not.FindString(rest); m != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %q; say: %s", p, number, m, w.but))
			}
		}
	}
	find(0, p, true)
	find(0, p, false)
	for i, line := range strings.Split(string(text), "\n") {
		find(i+1, line, false)
	}
	if path.Ext(p) != ".go" {
		return faults
	}
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile(p, -1, len(text)), text, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return faults
		}
		if tok == token.IDENT {
			find(fset.Position(pos).Line, lit, true)
		}
	}
}

// splitWords writes the words of a line apart and in lower case: hostTold and
// host_told become "host told".
func splitWords(line string) string {
	var b strings.Builder
	before := ' '
	for _, r := range line {
		switch {
		case unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsDigit(before)):
			b.WriteByte(' ')
			b.WriteRune(unicode.ToLower(r))
		case r == '_' || r == '-' || r == '/':
			b.WriteByte(' ')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		before = r
	}
	return b.String()
}
