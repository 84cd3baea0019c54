package trace

// Parsing the line of a call without reflection. It knows what Append writes; anything else is
// left to package encoding/json.

import "bytes"

// line is what remains of a line. Once it is bad, it stays so.
type line struct {
	b   []byte
	bad bool
}

// accept removes a text.
func (l *line) accept(text string) bool {
	if len(l.b) < len(text) || string(l.b[:len(text)]) != text {
		return false
	}
	l.b = l.b[len(text):]
	return true
}

// unquote removes a text in quotes, without escapes.
func (l *line) unquote() (text []byte) {
	if !l.accept(`"`) {
		l.bad = true
		return nil
	}
	n := bytes.IndexByte(l.b, '"')
	if n < 0 || bytes.IndexByte(l.b[:n], '\\') >= 0 {
		l.bad = true
		return nil
	}
	text, l.b = l.b[:n], l.b[n+1:]
	return text
}

// mostDigits keeps numbers within int64.
const mostDigits = 15

// digits removes a number with as many digits after the point as the caller wants, without the
// point.
func (l *line) digits(after int) (v int64) {
	negative, n, point := l.accept("-"), 0, -1
	for ; n < len(l.b); n++ {
		c := l.b[n]
		if c == '.' && point < 0 {
			point = n
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		v = 10*v + int64(c-'0')
	}
	if n == 0 || n > mostDigits || after == 0 && point >= 0 || after > 0 && point != n-after-1 {
		l.bad = true
	}
	if l.b = l.b[n:]; negative {
		return -v
	}
	return v
}

// number removes an integer.
func (l *line) number() int32 {
	v := l.digits(0)
	if v != int64(int32(v)) {
		l.bad = true
	}
	return int32(v)
}

// call parses a call of process pid. ok is false if the line has anything else.
func (p *partReader) call(text []byte, pid int) (e Event, ok bool) {
	l := line{b: text}
	var name, kind, site []byte
	e = Event{Peer: None, Tag: -1, From: None, By: -1}
	if !l.accept(`{"ph":"X","pid":`) || l.digits(0) != int64(pid) || !l.accept(`,"tid":`) || l.digits(0) < 0 || !l.accept(`,"name":`) {
		return e, false
	}
	name = l.unquote()
	if !l.accept(`,"cat":`) {
		return e, false
	}
	switch kind = l.unquote(); string(kind) {
	case RowProtocol, RowProgress, RowAsleep, RowNetwork, catStep:
		return e, false
	}
	if !l.accept(`,"ts":`) {
		return e, false
	}
	e.Begin = l.digits(3)
	if !l.accept(`,"dur":`) {
		return e, false
	}
	duration := l.digits(3)
	e.End = e.Begin + duration
	if duration < 0 || !l.accept(`,"args":{`) {
		return e, false
	}
	for !l.bad && !l.accept("}}") {
		l.accept(",")
		key := l.unquote()
		if !l.accept(":") {
			return e, false
		}
		if string(key) == "site" {
			site = l.unquote()
		} else {
			e.set(&l, key)
		}
	}
	if l.bad || len(l.b) > 0 {
		return e, false
	}
	p.key = append(append(append(append(append(p.key[:0], name...), 0), kind...), 0), site...)
	if e.Label = p.known[string(p.key)]; e.Label == nil {
		e.Label = p.labels.Of(Label{string(name), string(kind), string(site)})
		p.known[string(p.key)] = e.Label
	}
	return e, true
}

// set parses the value of an argument; args has their names.
func (e *Event) set(l *line, key []byte) {
	switch string(key) {
	case "comm":
		l.unquote()
	case "c":
		e.Comm = l.number()
	case "peer":
		e.Peer = l.number()
	case "tag":
		e.Tag = l.number()
	case "bytes":
		e.Bytes = int(l.digits(0))
	case "calls":
		e.Calls = l.number()
	case "packing_ns":
		e.Packing = l.number()
	case "sent":
		e.SendNumber, e.Sends = l.number(), true
	case "from":
		e.From = l.number()
	case "fromtag":
		e.FromTag = l.number()
	case "got":
		e.FromBytes = int(l.digits(0))
	case "recv":
		e.RecvNumber = l.number()
	case "starts":
		e.Starts = l.accept("true")
	case "by":
		e.By = l.number()
	case "nth":
		e.Nth = l.number()
	default:
		l.bad = true
	}
}
