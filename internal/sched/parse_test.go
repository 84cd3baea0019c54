package sched

// The text of graphs, read back: tests are written in it, and what String writes is the same graph
// again. Empty lines are skipped, and comments, which begin with #.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseText reads the text of any number of graphs. Errors name the line.
func parseText(text string) ([]*Graph, error) {
	var graphs []*Graph
	p := parser{}
	begun := 0 // line of the current graph's header
	finish := func() error {
		if begun == 0 {
			return nil
		}
		g, err := p.b.Graph()
		if err != nil {
			return fmt.Errorf("the graph that begins in line %d: %w", begun, err)
		}
		graphs = append(graphs, g)
		return nil
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		p.words = strings.Fields(line)
		if len(p.words) == 0 {
			continue
		}
		p.line, p.err = number, nil
		switch {
		case p.words[0] == "rank":
			if err := finish(); err != nil {
				return nil, err
			}
			p.head()
			begun = number
		case begun == 0:
			p.fail("%q comes before the header of the graph, such as: rank 0 of 4, scratch 0", p.words[0])
		default:
			p.op()
		}
		if p.err != nil {
			return nil, p.err
		}
	}
	return graphs, finish()
}

// parser consumes the words of a line. The first error is kept.
type parser struct {
	b     Builder
	line  int
	words []string
	err   error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("line %d: "+format, append([]any{p.line}, args...)...)
	}
}

// next consumes the next word. It returns "" at the end of the line.
func (p *parser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *parser) expect(want string) {
	if w := p.next(); w != want {
		p.fail("found %q, expected %q", w, want)
	}
}

// number consumes a number from 0 to limit, followed by mark.
func (p *parser) number(what, mark string, limit int) int {
	w := p.next()
	digits, ok := strings.CutSuffix(w, mark)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > limit {
		p.fail("%q is not a valid %s: want a number from 0 to %d%s", w, what, limit, mark)
		return 0
	}
	return n
}

func (p *parser) end() {
	if len(p.words) > 0 {
		p.fail("unexpected %q at the end of the line", p.words[0])
	}
}

func (p *parser) head() {
	p.expect("rank")
	rank := p.number("rank", "", math.MaxInt32)
	p.expect("of")
	size := p.number("number of ranks", ",", math.MaxInt32)
	p.expect("scratch")
	tmp, more := p.listItem("number of bytes", math.MaxInt)
	shared, ports := 0, 0
	if more && p.maybe("shared") {
		shared, more = p.listItem("number of bytes", math.MaxInt)
	}
	if more {
		p.expect("ports")
		ports = p.number("number of ports", "", math.MaxInt32)
	}
	p.end()
	if rank >= size {
		p.fail("rank %d is outside of %d ranks", rank, size)
	}
	p.b.Reset(rank, size)
	p.b.tmp, p.b.shared, p.b.ports = tmp, shared, ports
}

// listItem consumes a number and reports whether a comma follows it.
func (p *parser) listItem(what string, limit int) (n int, more bool) {
	mark := ""
	if len(p.words) > 0 && strings.HasSuffix(p.words[0], ",") {
		mark = ","
	}
	return p.number(what, mark, limit), mark != ""
}

// op parses an operation and adds it to the Builder, which checks it.
func (p *parser) op() {
	if n := p.number("number of an operation", "", math.MaxInt32); n != len(p.b.ops) {
		p.fail("operation %d has the number %d", len(p.b.ops), n)
	}
	p.expect("step")
	p.b.step = int32(p.number("step", ":", math.MaxInt32))
	var op Op
	switch kind := p.next(); kind {
	case "send":
		op = Op{Kind: Send, Unordered: p.maybe("unordered")}
		op.Src = p.span()
		p.expect("to")
		p.peer(&op)
	case "recv":
		op = Op{Kind: Recv, Dst: p.span()}
		p.expect("from")
		p.peer(&op)
	case "hand":
		p.expect("over")
		op = Op{Kind: Send, HandOver: true, Src: p.span()}
		p.expect("to")
		p.peer(&op)
	case "take":
		p.expect("over")
		op = Op{Kind: Recv, HandOver: true, Dst: p.span()}
		p.expect("from")
		p.peer(&op)
	case "copy":
		op = Op{Kind: Copy, Src: p.span()}
		p.expect("to")
		op.Dst = p.span()
	case "reduce":
		op = Op{Kind: Reduce, Src: p.span()}
		p.expect("into")
		op.Dst = p.span()
	default:
		p.fail("unknown operation %q; want send, recv, hand over, take over, copy or reduce", kind)
	}
	var after []ID
	if len(p.words) > 0 {
		for p.expect("after"); len(p.words) > 0; {
			after = append(after, ID(p.number("operation before this one", "", len(p.b.ops)-1)))
		}
		if after == nil {
			p.fail("no operation follows after")
		}
	}
	if op.Unordered && p.b.ports == 0 {
		p.fail("the send is unordered, but the header of the graph names no ports, such as: rank 0 of 3, scratch 0, ports 4")
	}
	if p.err == nil {
		p.b.add(op, after)
		if p.b.err != nil {
			p.fail("%w", p.b.err)
		}
	}
}

// maybe consumes word and reports true if it comes next.
func (p *parser) maybe(word string) bool {
	if len(p.words) == 0 || p.words[0] != word {
		return false
	}
	p.next()
	return true
}

// peer parses the peer of a message and its stream.
func (p *parser) peer(op *Op) {
	op.Peer = int32(p.number("rank", "", math.MaxInt32))
	p.b.stream = 0
	if p.maybe("stream") {
		p.b.stream = uint16(p.number("stream", "", Streams-1))
	}
}

// span parses buffer[from:to].
func (p *parser) span() Span {
	w := p.next()
	name, rest, _ := strings.Cut(w, "[")
	rest, closed := strings.CutSuffix(rest, "]")
	low, high, _ := strings.Cut(rest, ":")
	from, err1 := strconv.Atoi(low)
	to, err2 := strconv.Atoi(high)
	if !closed || err1 != nil || err2 != nil || from < 0 || to < from {
		p.fail("%q is not a part of a buffer, such as out[8:16]", w)
		return Span{}
	}
	for b := In; b <= Shared; b++ {
		if b.String() == name {
			return Span{b, from, to - from}
		}
	}
	p.fail("%q: unknown buffer %q; want in, out, tmp or shared", w, name)
	return Span{}
}
