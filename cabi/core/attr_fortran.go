package core

// Attributes of Fortran (MPI-4.1 section 19.3.7). Its library passes values with their form,
// and functions that call the copy and delete functions of the program as Fortran does.

func fortranAttributes() map[string]handler {
	table := map[string]handler{"MPII_Keyval_set_proxy": (*Process).keyvalSetProxy}
	for _, k := range []struct {
		name string
		kind attrKind
		find func(*args, int) attributed
	}{
		{"Comm", commAttr, (*args).commWithAttrs},
		{"Type", typeAttr, (*args).typeWithAttrs},
		{"Win", winAttr, (*args).winWithAttrs},
	} {
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
