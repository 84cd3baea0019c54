package core

// The basic elements of datatypes: type signatures (MPI-4.1 section 5.1), and the counts of
// statuses that depend on them (sections 3.2.5 and 5.1.11).

import "math"

// signature is the sequence of basic elements of a datatype, in the order of the packed
// stream: a leaf is one element, another is its parts one after the other.
type signature struct {
	leaf     *datatype
	form     externalForm // of a leaf, in external32
	parts    []part
	size     int64 // bytes
	number   int64 // elements
	external int64 // bytes in external32
}

type part struct {
	count int64
	of    *signature
}

// leaf returns the signature of a predefined datatype of one element. The markers MPI_LB and
// MPI_UB have none.
func leaf(t *datatype) *signature {
	s := &signature{leaf: t, form: formOf(t), size: t.layout.Size()}
	if s.size > 0 {
		s.number = 1
		s.external = s.form.units * s.form.external
	}
	return s
}

// times returns the signature of n elements.
func (s *signature) times(n int64) *signature {
	if n == 1 {
		return s
	}
	if len(s.parts) == 1 { // nested repetitions are one
		n, s = n*s.parts[0].count, s.parts[0].of
	}
	return sequence([]part{{n, s}})
}

// sequence returns the signature of parts. Empty ones are dropped and equal neighbors
// joined, so that a struct of one element type is recognized.
func sequence(parts []part) *signature {
	s := &signature{}
	for _, p := range parts {
		if p.count == 0 || p.of.size == 0 {
			continue
		}
		s.size += p.count * p.of.size
		s.number += p.count * p.of.number
		s.external += p.count * p.of.external
		if len(p.of.parts) == 1 {
			p = part{p.count * p.of.parts[0].count, p.of.parts[0].of}
		}
		if n := len(s.parts); n > 0 && s.parts[n-1].of == p.of {
			s.parts[n-1].count += p.count
		} else {
			s.parts = append(s.parts, p)
		}
	}
	return s
}

// element returns the predefined datatype that a datatype is made of, or nil if it is made of
// several. A pair type counts as one, as in reductions.
func (t *datatype) element() *datatype {
	if t.basic {
		return t
	}
	var found *datatype
	for _, of := range t.recipe.types {
		if of.layout.Size() == 0 {
			continue
		}
		e := of.element()
		if e == nil || (found != nil && e != found) {
			return nil
		}
		found = e
	}
	return found
}

// elementsIn returns how many whole elements the first n bytes of the stream of repeated signatures
// hold, and how many bytes remain.
func (s *signature) elementsIn(n int64) (number, rest int64) {
	if s.size == 0 {
		return 0, n
	}
	number, rest = n/s.size*s.number, n%s.size
	if s.leaf != nil {
		return number, rest
	}
	for _, p := range s.parts {
		if bytes := p.count * p.of.size; rest >= bytes {
			number, rest = number+p.count*p.of.number, rest-bytes
			continue
		}
		more, left := p.of.elementsIn(rest)
		return number + more, left
	}
	return number, rest
}

// bytes returns the size of the first n elements of the stream of repeated signatures.
func (s *signature) bytes(n int64) int64 {
	if s.number == 0 {
		return 0
	}
	size, rest := n/s.number*s.size, n%s.number
	if s.leaf != nil {
		return size
	}
	for _, p := range s.parts {
		if number := p.count * p.of.number; rest >= number {
			size, rest = size+p.count*p.of.size, rest-number
			continue
		}
		return size + p.of.bytes(rest)
	}
	return size
}

func counts() map[string]handler {
	return map[string]handler{
		"Get_count":             (*Process).getCount,
		"Get_elements":          (*Process).getElements,
		"Get_elements_x":        (*Process).getElementsX,
		"Status_set_elements":   (*Process).statusSetElements,
		"Status_set_elements_x": (*Process).statusSetElements,
	}
}

// statusAndType returns the bytes and the datatype of the arguments status and datatype.
func (a *args) statusAndType() (int64, *datatype) {
	t := a.datatype(1)
	a.results(0, 2)
	if a.addr(0) == ignoreStatus {
		a.fail(errorf(errArg, "the status is MPI_STATUS_IGNORE"))
	}
	if a.err != nil {
		return 0, nil
	}
	return a.p.abi.statusAt(a.addr(0)).length, t
}

func (p *Process) getCount(a *args) error {
	n, t := a.statusAndType()
	if a.err != nil {
		return a.err
	}
	switch size := t.layout.Size(); {
	case n == 0:
	case size == 0 || n%size != 0:
		n = undefined
	default:
		n /= size
	}
	a.setNumber(2, n)
	return nil
}

func (p *Process) getElements(a *args) error {
	n, t := a.statusAndType()
	if a.err != nil {
		return a.err
	}
	number, rest := t.elements.elementsIn(n)
	if rest != 0 {
		number = undefined
	}
	a.setNumber(2, number)
	return nil
}

func (p *Process) getElementsX(a *args) error {
	a.wide = true
	return p.getElements(a)
}

// setNumber stores a number, or MPI_UNDEFINED if it does not fit an int.
func (a *args) setNumber(i int, n int64) {
	if !a.wide && n > math.MaxInt32 {
		n = undefined
	}
	a.setCount(i, int(n))
}

func (p *Process) statusSetElements(a *args) error {
	t, n := a.datatype(1), a.count(2)
	a.results(0)
	if a.err != nil || a.addr(0) == ignoreStatus {
		return a.err
	}
	p.abi.setLength(a.addr(0), t.elements.bytes(int64(n)))
	return nil
}
