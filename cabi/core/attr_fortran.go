package core

// Attributes of Fortran (MPI-4.1 section 19.3.7). Its library passes values with their form,
// and functions that call the copy and delete functions of the program as Fortran does.

func fortranAttributes() map[string]handler {
	table := map[string]handler{
		"MPII_Keyval_set_proxy":        (*Process).keyvalSetProxy,
		"ompi_attr_create_keyval":      openKeyval(pointerAttr),
		"ompi_attr_create_keyval_fint": openKeyval(intAttr),
		"ompi_attr_create_keyval_aint": openKeyval(aintAttr),
		"ompi_attr_set_fint":           openSetAttr(intAttr),
		"ompi_attr_set_aint":           openSetAttr(aintAttr),
		"ompi_attr_get_fint":           openGetAttr(intAttr),
		"ompi_attr_get_aint":           openGetAttr(aintAttr),
	}
	for _, k := range attributedObjects() {
		table["MPII_"+k.name+"_set_attr"] = func(p *Process, a *args) error {
			return p.setAttr(a, k.kind, k.find(a, 0), attrForm(a.int(3)))
		}
		table["MPII_"+k.name+"_get_attr"] = func(p *Process, a *args) error {
			return p.getAttr(a, k.kind, k.find(a, 0), attrForm(a.int(4)))
		}
	}
	return table
}

// keyvalSetProxy has the parameters key, copy, delete.
func (p *Process) keyvalSetProxy(a *args) error {
	p.attrMu.Lock()
	defer p.attrMu.Unlock()
	if k := p.keyvals.get(a.handle(0)); k != nil {
		k.copyProxy, k.deleteProxy = a.addr(1), a.addr(2)
	}
	return nil
}

// callFortran calls a function of Fortran: all parameters are addresses. The first two and the last
// are the object, the key and the error code; of those between them the two first are values.
func (p *Process) callFortran(k *keyval, fn uintptr, o attributed, first, second uint64, results ...uint64) int32 {
	cells := heapCells(5)
	cells[0], cells[1], cells[2], cells[3], cells[4] = uint64(uint32(p.abi.fortranOf(o.attrHandle()))), uint64(uint32(k.handle)), first, second, 0
	at := uint64(addressOf(cells))
	args := append([]uint64{at, at + 8, at + 16, at + 24}, results...)
	p.callback(fn, append(args, at+32)...)
	return int32(cells[4])
}

// The functions that the Fortran and C++ libraries of Open MPI call. Objects are of these kinds.
var openKinds = map[int]attrKind{1: commAttr, 2: typeAttr, 3: winAttr}

// openKeyval has the parameters kind, copy, delete, key, extra.
func openKeyval(form attrForm) handler {
	return func(p *Process, a *args) error {
		k := &keyval{kind: openKinds[a.int(0)], copy: a.addr(1), delete: a.addr(2), extra: a.v[4], fortran: form}
		a.setInt(3, p.addKeyval(k))
		return nil
	}
}

// openObject returns the object of a handle.
func (a *args) openObject(i int) (attributed, attrKind) {
	h := a.p.abi.handleOf(a.v[i])
	a.v[i] = uint64(h)
	switch h & kindMask {
	case kindComm:
		return a.commWithAttrs(i), commAttr
	case kindWin:
		return a.winWithAttrs(i), winAttr
	}
	return a.typeWithAttrs(i), typeAttr
}

// openSetAttr has the parameters kind, object, attributes of the object, key, value.
func openSetAttr(form attrForm) handler {
	return func(p *Process, a *args) error {
		o, kind := a.openObject(1)
		a.v[1], a.v[2] = a.v[3], a.v[4]
		return p.setAttr(a, kind, o, form)
	}
}

// openGetAttr has the parameters attributes of the object, key, value, flag, object.
func openGetAttr(form attrForm) handler {
	return func(p *Process, a *args) error {
		o, kind := a.openObject(4)
		word := heapCells(1)
		value := a.addr(2)
		a.v[2] = uint64(addressOf(word))
		if err := p.getAttr(a, kind, o, form); err != nil || a.err != nil {
			return err
		}
		if *at[int32](a.addr(3)) == 0 {
			return nil
		}
		if form == intAttr {
			set(value, int32(word[0]))
		} else {
			set(value, word[0])
		}
		return nil
	}
}
