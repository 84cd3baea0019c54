package core

// Attributes of communicators, datatypes and windows (MPI-4.1 section 7.7).
//
// Callbacks of the program are called without a lock: they may call MPI.

import (
	"runtime"
	"slices"
	"sync"
)

// keyval is a key of attributes. It exists while it has a handle or an attribute.
type keyval struct {
	handle       handle
	kind         attrKind
	copy, delete uintptr // functions of the program, or 0
	extra        uint64
	// Functions of the Fortran library that call copy and delete, or 0: see attr_fortran.go.
	copyProxy, deleteProxy uintptr
	fortran                attrForm // of the values of copy and delete, if they are in Fortran; else pointerAttr
	refs                   int      // guarded by Process.attrMu
	freed                  bool     // guarded by Process.attrMu
}

// attrKind is the kind of object that a key is for.
type attrKind int

const (
	commAttr attrKind = iota
	typeAttr
	winAttr
)

// attrs are the attributes of an object, in the order in which they were set. They are guarded
// by Process.attrMu.
type attrs struct{ list []*attribute }

type attribute struct {
	key *keyval
	// value has one element; C gets the address of a value that Fortran has set.
	value []uint64
	form  attrForm
}

// duplicate is MPI_COMM_DUP_FN of the standard ABI in place of the address of a copy function.
const duplicate = 1

// attrForm says what a value is: the numbers are those of the Fortran library.
type attrForm int

const (
	pointerAttr attrForm = 0 // void * of C
	aintAttr    attrForm = 1 // MPI_Aint, of Fortran
	intAttr     attrForm = 3 // INTEGER of the old functions of Fortran
)

// attributed is an object that can have attributes.
type attributed interface {
	attributes() *attrs
	attrHandle() handle
}

func (c *comm) attributes() *attrs     { return &c.attrs }
func (c *comm) attrHandle() handle     { return c.handle }
func (t *datatype) attributes() *attrs { return &t.attrs }
func (t *datatype) attrHandle() handle { return t.handle }

// attrState is the part of Process for attributes.
type attrState struct {
	attrMu    sync.Mutex
	keyvals   table[keyval]
	constants [attrConstants]int32 // values of predefined attributes, of which C gets the address
}

// attributedObject is what can have attributes.
type attributedObject struct {
	name string
	kind attrKind
	find func(*args, int) attributed
}

func attributedObjects() []attributedObject {
	return []attributedObject{
		{"Comm", commAttr, (*args).commWithAttrs},
		{"Type", typeAttr, (*args).typeWithAttrs},
		{"Win", winAttr, (*args).winWithAttrs},
	}
}

func attributeCalls() map[string]handler {
	table := map[string]handler{
		"Keyval_create": createKeyval(commAttr),
		"Keyval_free":   freeKeyval(commAttr),
		"Attr_put":      setAttr(commAttr, (*args).commWithAttrs),
		"Attr_get":      getAttr(commAttr, (*args).commWithAttrs),
		"Attr_delete":   deleteAttr(commAttr, (*args).commWithAttrs),
	}
	for _, k := range attributedObjects() {
		table[k.name+"_create_keyval"] = createKeyval(k.kind)
		table[k.name+"_free_keyval"] = freeKeyval(k.kind)
		table[k.name+"_set_attr"] = setAttr(k.kind, k.find)
		table[k.name+"_get_attr"] = getAttr(k.kind, k.find)
		table[k.name+"_delete_attr"] = deleteAttr(k.kind, k.find)
	}
	return table
}

func (a *args) commWithAttrs(i int) attributed {
	if c := a.comm(i); c != nil {
		return c
	}
	return nil
}

func (a *args) typeWithAttrs(i int) attributed {
	if t := a.datatype(i); t != nil {
		return t
	}
	return nil
}

// keyval returns the key of a handle for objects of a kind.
func (a *args) keyval(i int, kind attrKind) *keyval {
	h := a.handle(i)
	k := a.p.keyvals.get(h)
	switch {
	case h == keyvalInvalid:
		a.fail(errorf(errKeyval, "the key is MPI_KEYVAL_INVALID"))
	case h>>26&0x3f == (predefined|kindKeyval)>>26:
		a.fail(errorf(errKeyval, "the key %#x is predefined", uint32(h)))
	case k == nil || k.kind != kind:
		a.fail(errorf(errKeyval, "%#x is not a key for this kind of object", uint32(h)))
	default:
		return k
	}
	return nil
}

// createKeyval has the parameters copy, delete, key, extra.
func createKeyval(kind attrKind) handler {
	return func(p *Process, a *args) error {
		if a.results(2); a.err != nil {
			return nil
		}
		a.setInt(2, p.addKeyval(&keyval{kind: kind, copy: a.addr(0), delete: a.addr(1), extra: a.v[3]}))
		return nil
	}
}

// addKeyval stores a key and returns its number.
func (p *Process) addKeyval(k *keyval) int {
	p.attrMu.Lock()
	defer p.attrMu.Unlock()
	k.refs = 1
	k.handle = p.keyvals.add(k)
	return int(k.handle)
}

func freeKeyval(kind attrKind) handler {
	return func(p *Process, a *args) error {
		if a.results(0); a.err != nil {
			return nil
		}
		at := at[handle](a.addr(0))
		k := p.keyvals.get(*at)
		if k == nil || k.kind != kind {
			return errorf(errKeyval, "%#x is not a key for this kind of object", uint32(*at))
		}
		p.attrMu.Lock()
		defer p.attrMu.Unlock()
		if !k.freed { // copies of the handle may be freed again while there are attributes
			k.freed = true
			p.dropKeyval(k)
		}
		*at = keyvalInvalid
		return nil
	}
}

// dropKeyval counts one user less. The lock is held.
func (p *Process) dropKeyval(k *keyval) {
	if k.refs--; k.refs == 0 {
		p.keyvals.remove(k.handle)
	}
}

// setAttr has the parameters object, key, value.
func setAttr(kind attrKind, find func(*args, int) attributed) handler {
	return func(p *Process, a *args) error { return p.setAttr(a, kind, find(a, 0), pointerAttr) }
}

func (p *Process) setAttr(a *args, kind attrKind, o attributed, form attrForm) error {
	k := a.keyval(1, kind)
	if a.err != nil {
		return nil
	}
	value := heapCells(1)
	value[0] = a.v[2]
	p.attrMu.Lock()
	k.refs++ // for the new attribute
	old := o.attributes().find(k)
	p.attrMu.Unlock()
	if old != nil { // it is deleted first (MPI-4.1 section 7.7.2)
		if err := p.deleteOne(o, old); err != nil {
			p.attrMu.Lock()
			defer p.attrMu.Unlock()
			p.dropKeyval(k)
			return err
		}
	}
	p.attrMu.Lock()
	defer p.attrMu.Unlock()
	if old := o.attributes().find(k); old != nil { // set by the delete function
		old.value, old.form = value, form
		p.dropKeyval(k)
		return nil
	}
	o.attributes().list = append(o.attributes().list, &attribute{key: k, value: value, form: form})
	return nil
}

func (l *attrs) find(k *keyval) *attribute {
	for _, e := range l.list {
		if e.key == k {
			return e
		}
	}
	return nil
}

// getAttr has the parameters object, key, value, flag.
func getAttr(kind attrKind, find func(*args, int) attributed) handler {
	return func(p *Process, a *args) error { return p.getAttr(a, kind, find(a, 0), pointerAttr) }
}

func (p *Process) getAttr(a *args, kind attrKind, o attributed, form attrForm) error {
	a.results(2, 3)
	if a.err != nil {
		return nil
	}
	if value, known, ok := p.predefinedAttr(a.handle(1), kind, o, form); known {
		a.setFlag(3, ok)
		if ok {
			set(a.addr(2), value) // a word for all forms: the Fortran library shortens it
		}
		return nil
	}
	k := a.keyval(1, kind)
	if a.err != nil {
		return nil
	}
	p.attrMu.Lock()
	defer p.attrMu.Unlock()
	e := o.attributes().find(k)
	a.setFlag(3, e != nil)
	if e != nil {
		value := e.value[0]
		if form == pointerAttr && e.form != pointerAttr {
			value = uint64(addressOf(e.value)) // MPI-4.1 section 19.3.7
		}
		set(a.addr(2), value)
	}
	return nil
}

// deleteAttr has the parameters object, key.
func deleteAttr(kind attrKind, find func(*args, int) attributed) handler {
	return func(p *Process, a *args) error {
		o, k := find(a, 0), a.keyval(1, kind)
		if a.err != nil {
			return nil
		}
		p.attrMu.Lock()
		e := o.attributes().find(k)
		p.attrMu.Unlock()
		if e == nil {
			return nil
		}
		return p.deleteOne(o, e)
	}
}

// deleteOne calls the delete function of an attribute and takes the attribute away, unless
// the function fails.
func (p *Process) deleteOne(o attributed, e *attribute) error {
	k := e.key
	if k.delete != 0 {
		if code := p.callDelete(k, o, e); code != 0 {
			return codeError(code)
		}
	}
	p.attrMu.Lock()
	defer p.attrMu.Unlock()
	l := o.attributes()
	if i := slices.Index(l.list, e); i >= 0 {
		l.list = slices.Delete(l.list, i, i+1)
		p.dropKeyval(k)
	}
	return nil
}

// callDelete calls the delete function of an attribute.
func (p *Process) callDelete(k *keyval, o attributed, e *attribute) (code int32) {
	switch {
	case k.fortran != pointerAttr:
		return p.callFortran(k, k.delete, o, e.value[0], k.extra)
	case k.deleteProxy != 0:
		return p.callback(k.deleteProxy, uint64(k.delete), p.abi.word(o.attrHandle()), uint64(uint32(k.handle)), uint64(e.form), e.value[0], k.extra)
	}
	return p.callback(k.delete, p.abi.word(o.attrHandle()), uint64(uint32(k.handle)), e.forC(), k.extra)
}

// callCopy calls the copy function of an attribute. value and flag are the addresses of its results.
func (p *Process) callCopy(k *keyval, o attributed, e *attribute, value, flag uint64) (code int32) {
	switch {
	case k.fortran != pointerAttr:
		return p.callFortran(k, k.copy, o, k.extra, e.value[0], value, flag)
	case k.copyProxy != 0:
		return p.callback(k.copyProxy, uint64(k.copy), p.abi.word(o.attrHandle()), uint64(uint32(k.handle)), k.extra, uint64(e.form), e.value[0], value, flag)
	}
	return p.callback(k.copy, p.abi.word(o.attrHandle()), uint64(uint32(k.handle)), k.extra, e.forC(), value, flag)
}

// forC returns the value as functions in C see it.
func (e *attribute) forC() uint64 {
	if e.form == pointerAttr {
		return e.value[0]
	}
	return uint64(addressOf(e.value))
}

// deleteAttrs deletes all attributes of an object, the newest first (MPI-4.1 section 11.2.4
// requires this order for MPI_COMM_SELF). It ends at the first error.
func (p *Process) deleteAttrs(o attributed) error {
	for {
		p.attrMu.Lock()
		l := o.attributes().list
		var last *attribute
		if len(l) > 0 {
			last = l[len(l)-1]
		}
		p.attrMu.Unlock()
		if last == nil {
			return nil
		}
		if err := p.deleteOne(o, last); err != nil {
			return err
		}
	}
}

// copyAttrs copies the attributes of an object to its duplicate, as their copy functions
// decide.
func (p *Process) copyAttrs(from, to attributed) error {
	p.attrMu.Lock()
	l := slices.Clone(from.attributes().list)
	p.attrMu.Unlock()
	if len(l) == 0 {
		return nil
	}
	out := heapCells(2) // the new value and the flag
	defer runtime.KeepAlive(out)
	for _, e := range l {
		k := e.key
		if k.copy == 0 {
			continue
		}
		out[0], out[1] = 0, 0
		if k.copy == duplicate {
			out[0], out[1] = e.value[0], 1
		} else if code := p.callCopy(k, from, e, uint64(addressOf(out)), uint64(addressOf(out[1:]))); code != 0 {
			return codeError(code)
		}
		if int32(out[1]) == 0 {
			continue
		}
		n := &attribute{key: k, value: heapCells(1), form: e.form}
		n.value[0] = out[0]
		switch {
		case k.fortran == intAttr:
			n.form, n.value[0] = intAttr, uint64(int64(int32(out[0])))
		case k.fortran != pointerAttr:
			n.form = k.fortran
		case k.copyProxy == 0:
			n.form = pointerAttr
		}
		p.attrMu.Lock()
		k.refs++
		to.attributes().list = append(to.attributes().list, n)
		p.attrMu.Unlock()
	}
	return nil
}

// heapCells returns memory that functions of the program may write to: it is never on the
// stack, which moves.
//
//go:noinline
func heapCells(n int) []uint64 { return make([]uint64, n) }
