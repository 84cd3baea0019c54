package launch

// The command that starts a process on a host. A template such as "ip netns exec {host}"
// is split into words as a shell does; {host} is replaced, otherwise the host is
// appended, and the command line of the agent follows.

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// defaultRSH is ssh with the user's configuration. It never asks for a password, because
// no user could answer, and allocates no terminal, which would change bytes.
const defaultRSH = "ssh -o BatchMode=yes -T {host}"

const hostMark = "{host}"

// rshWords returns the command line for a host.
func rshWords(template []string, host string, command ...string) []string {
	words := make([]string, 0, len(template)+1+len(command))
	marked := false
	for _, w := range template {
		marked = marked || strings.Contains(w, hostMark)
		words = append(words, strings.ReplaceAll(w, hostMark, host))
	}
	if !marked {
		words = append(words, host)
	}
	// ssh passes its arguments to a shell on the host.
	shell := path.Base(template[0]) == "ssh" || path.Base(template[0]) == "rsh"
	for _, w := range command {
		if shell {
			w = quoteWord(w)
		}
		words = append(words, w)
	}
	return words
}

func quoteWord(w string) string {
	plain := w != "" && strings.IndexFunc(w, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+=:,@%", c))
	}) < 0
	if plain {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// ParseRSH splits a template into words by the rules of a shell: spaces separate words,
// quotes and backslashes keep them together. Variables are not expanded.
func ParseRSH(template string) ([]string, error) {
	var words []string
	var word strings.Builder
	open, quote := false, byte(0)
	for i := 0; i < len(template); i++ {
		c := template[i]
		switch {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '\\':
			word.WriteByte(c)
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case c == '\\':
			if i+1 == len(template) {
				return nil, errors.New("the command ends with a backslash")
			}
			i++
			if quote == '"' && !strings.ContainsRune("\"\\$`", rune(template[i])) {
				word.WriteByte('\\')
			}
			word.WriteByte(template[i])
			open = true
		case c == ' ' || c == '\t' || c == '\n':
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if open {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("the command is empty; use for example 'ssh {host}'")
	}
	return words, nil
}
