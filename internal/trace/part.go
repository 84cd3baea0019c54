package trace

// Reading a long file in little memory: line by line, as it was written, and only the first calls
// of each rank.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// ReadPart reads a file as Read does, but keeps at most most calls of all ranks together: as many
// of each rank, its first ones. Rank.Dropped counts the others too.
func ReadPart(in io.Reader, most int) (*Trace, error) {
	lines := bufio.NewReaderSize(in, 1<<20)
	if head, err := lines.Peek(len(Header)); err != nil || string(head) != Header { // not written by Muster
		text, err := io.ReadAll(lines)
		if err != nil {
			return nil, err
		}
		return Read(text)
	}
	p := partReader{reader: reader{ranks: map[int]*Rank{}, labels: Labels{}, messages: map[int]int{}}, most: most, limit: most, known: map[string]*Label{}, skipped: map[int]int{}}
	ended := false
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n') // without a copy: most lines are skipped
		if errors.Is(err, bufio.ErrBufferFull) {
			long := bytes.Clone(line)
			line, err = lines.ReadBytes('\n')
			line = append(long, line...)
		}
		if len(line) > 0 && n > 1 {
			line = bytes.TrimSpace(line)
			if rest, ok := bytes.CutSuffix(line, []byte("]}")); ok && bytes.Count(rest, []byte("{")) == bytes.Count(rest, []byte("}")) {
				ended, line = true, rest
			}
			if err := p.line(bytes.TrimSuffix(line, []byte(","))); err != nil {
				return nil, fmt.Errorf("trace: line %d: %w", n, err)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if !ended {
		return nil, errors.New("trace: not a complete trace: it has no end")
	}
	for pid, n := range p.skipped {
		p.ranks[pid].cut(n)
	}
	return p.trace()
}

// Part returns the first calls of each rank.
func (t *Trace) Part(calls int) *Trace {
	part := &Trace{}
	for _, k := range t.Ranks {
		first := *k
		first.Events = slices.Clone(k.Events[:min(calls, len(k.Events))])
		first.cut(len(k.Events) - len(first.Events))
		part.Ranks = append(part.Ranks, &first)
	}
	return part
}

// cut completes a rank of which some calls were not kept.
func (k *Rank) cut(calls int) {
	k.Dropped += calls
	for i := range k.Events {
		if e := &k.Events[i]; int(e.By) >= len(k.Events) {
			e.By = -1
		}
	}
}

type partReader struct {
	reader
	most, total int
	limit       int               // calls of a rank
	skipped     map[int]int       // by process: calls that were not kept
	known       map[string]*Label // by name, kind and site, separated by 0
	key         []byte
	last        *Rank // the one whose calls are read
}

func (p *partReader) line(line []byte) error {
	if len(line) == 0 || bytes.HasPrefix(line, []byte(`{"ph":"s"`)) || bytes.HasPrefix(line, []byte(`{"ph":"f"`)) {
		return nil // flows repeat what calls have
	}
	pid := 0
	if rest, ok := bytes.CutPrefix(line, []byte(`{"ph":"X","pid":`)); ok {
		digits, _, _ := bytes.Cut(rest, []byte(","))
		pid, _ = strconv.Atoi(string(digits))
		if k := p.ranks[pid]; k != nil && len(k.Events) >= p.limit {
			p.skipped[pid]++
			return nil
		}
	}
	if e, ok := p.call(line, pid); ok {
		p.add(pid, e)
		return nil
	}
	var x entry
	if err := json.Unmarshal(line, &x); err != nil {
		return err
	}
	if pid == 0 {
		return p.element(&x)
	}
	k := p.rankOf(pid)
	before := len(k.Events)
	err := p.element(&x)
	if p.total += len(k.Events) - before; p.total > p.most {
		p.halve()
	}
	return err
}

// add adds a call. The ranks follow each other, so the list of the one before has its length.
func (p *partReader) add(pid int, e Event) {
	k := p.rankOf(pid)
	if k != p.last {
		if p.last != nil {
			p.last.Events = append(make([]Event, 0, len(p.last.Events)), p.last.Events...)
		}
		p.last = k
	}
	k.Events = append(k.Events, e)
	if p.total++; p.total > p.most {
		p.halve()
	}
}

// halve keeps half as many calls of each rank.
func (p *partReader) halve() {
	longest := 0
	for _, k := range p.ranks {
		longest = max(longest, len(k.Events))
	}
	p.limit = max(1, longest/2)
	p.total = 0
	for pid, k := range p.ranks {
		if len(k.Events) > p.limit {
			p.skipped[pid] += len(k.Events) - p.limit
			k.Events = append(make([]Event, 0, p.limit), k.Events[:p.limit]...)
		}
		p.total += len(k.Events)
	}
}
