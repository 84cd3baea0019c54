package core

// Calls that ask for the status of several requests and leave them as they are (MPI-4.1 section
// 3.7.6).

func (p *Process) statusOfAll(a *args) error {
	b := a.batch(3)
	if a.err != nil {
		return a.err
	}
	all := true
	for i := range b.handles.n {
		if r := b.get(i); r != nil && !r.poll() {
			all = false
		}
	}
	a.setFlag(2, all)
	for i := 0; all && i < b.handles.n; i++ {
		st, err := b.statusOf(i)
		if err != nil {
			return err
		}
		b.setStatus(i, st, false)
	}
	return nil
}

// statusOf returns the status of a request that is complete.
func (b *batch) statusOf(i int) (status, error) {
	r := b.get(i)
	if r == nil {
		return emptyStatus, nil
	}
	r.own(b.a)
	st := r.status
	if q, ok := r.op.(querier); ok {
		return st, q.query(&st)
	}
	return st, r.err
}

func (p *Process) statusOfAny(a *args) error {
	b := a.batch(4)
	if a.err != nil {
		return a.err
	}
	i, active := b.look()
	a.setFlag(3, i != undefined || !active)
	a.setInt(2, i)
	if i == undefined {
		if !active {
			a.setStatus(4, emptyStatus)
		}
		return nil
	}
	st, err := b.statusOf(i)
	a.setStatus(4, st)
	return err
}

func (p *Process) statusOfSome(a *args) error {
	b := a.batch(4)
	if a.err != nil {
		return a.err
	}
	count, active := 0, false
	indices := memory[int32](a.addr(3), b.handles.n)
	for i := range b.handles.n {
		r := b.get(i)
		if r == nil {
			continue
		}
		active = true
		if !r.poll() {
			continue
		}
		st, err := b.statusOf(i)
		if err != nil {
			return err
		}
		b.setStatus(count, st, false)
		indices[count] = int32(i)
		count++
	}
	if !active {
		count = undefined
	}
	a.setInt(2, count)
	return nil
}
