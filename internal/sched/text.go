package sched

// The text of a graph: a header line that names the rank, and a line for each
// operation. String writes it; Parse reads it back to the same graph.
//
//	rank 1 of 3, scratch 64
//	0 step 0: copy in[0:8] to out[8:16]
//	1 step 1: send out[8:16] to 0 after 0
//	2 step 1: recv tmp[0:8] from 2
//	3 step 1: reduce tmp[0:8] into out[8:16] after 1 2
//
// The header of a graph with unordered sends gives the number of ports. Messages in
// streams other than 0 name their stream:
//
//	rank 0 of 3, scratch 0, ports 4
//	0 step 0: send unordered in[0:8] to 1
//	1 step 0: recv out[8:16] from 1 stream 2
//
// A graph with a shared buffer gives its size, and hands spans of it over:
//
//	rank 0 of 3, scratch 0, shared 64
//	0 step 0: copy in[0:8] to shared[0:8]
//	1 step 0: hand over shared[0:8] to 1 after 0
//	2 step 0: take over shared[8:16] from 1
//
// "after" lists the operations that must have completed. The order of sends to one
// peer is not written: it follows from the order of the lines. Parse skips empty
// lines and comments, which begin with #.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

func (s Span) String() string { return fmt.Sprintf("%s[%d:%d]", s.Buf, s.Off, s.Off+s.Len) }

func (op Op) String() string {
	switch op.Kind {
	case Send:
		if op.HandOver {
			return fmt.Sprintf("hand over %v to %d%s", op.Src, op.Peer, op.stream())
		}
		if op.Unordered {
			return fmt.Sprintf("send unordered %v to %d%s", op.Src, op.Peer, op.stream())
		}
		return fmt.Sprintf("send %v to %d%s", op.Src, op.Peer, op.stream())
	case Recv:
		if op.HandOver {
			return fmt.Sprintf("take over %v from %d%s", op.Dst, op.Peer, op.stream())
		}
		return fmt.Sprintf("recv %v from %d%s", op.Dst, op.Peer, op.stream())
	case Copy:
		return fmt.Sprintf("copy %v to %v", op.Src, op.Dst)
	}
	return fmt.Sprintf("reduce %v into %v", op.Src, op.Dst)
}

func (op *Op) stream() string {
	if op.Stream == 0 {
		return ""
	}
	return fmt.Sprintf(" stream %d", op.Stream)
}

// String returns the text of the graph.
func (g *Graph) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d of %d, scratch %d", g.Rank, g.Size, g.Tmp)
	if g.Shared > 0 {
		fmt.Fprintf(&b, ", shared %d", g.Shared)
	}
	if g.Ports > 0 {
		fmt.Fprintf(&b, ", ports %d", g.Ports)
	}
	b.WriteByte('\n')
	before := g.predecessors()
	for i, op := range g.Ops {
		fmt.Fprintf(&b, "%d step %d: %v", i, op.Step, op)
		for k, d := range before[i] {
			if k == 0 {
				b.WriteString(" after")
			}
			fmt.Fprintf(&b, " %d", d)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// predecessors returns the inverse of After: for each operation, those that must have
// completed.
func (g *Graph) predecessors() [][]int32 {
	before := make([][]int32, len(g.Ops))
	for i := range g.Ops {
		for _, j := range g.Successors(i) {
			before[j] = append(before[j], int32(i))
		}
	}
	return before
}

// Parse reads the text of any number of graphs. Errors name the line.
func Parse(text string) ([]*Graph, error) {
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
