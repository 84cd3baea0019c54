package core

// Handlers of functions that do the same with objects of different kinds.

import "github.com/muster-mpi/muster/mpi"

// query is the handler of a function that stores a number of the object that its first parameter
// names.
func query[T any](find func(*args, int) T, get func(T) int) handler {
	return func(p *Process, a *args) error {
		if o := find(a, 0); a.err == nil {
			a.setInt(1, get(o))
		}
		return nil
	}
}

// queryFlag is query for a logical value.
func queryFlag[T any](find func(*args, int) T, get func(T) bool) handler {
	return query(find, func(o T) int { return int(flag(get(o))) })
}

// groupOf is query for a group.
func groupOf[T any](find func(*args, int) T, get func(T) *mpi.Group) handler {
	return func(p *Process, a *args) error {
		a.setGroup(1, get(find(a, 0)), nil)
		return nil
	}
}

// copyInfo is query for a copy of an info object.
func copyInfo[T any](find func(*args, int) T, get func(T) *info) handler {
	return func(p *Process, a *args) error {
		a.setHandle(1, p.infos.add(get(find(a, 0)).clone()))
		return nil
	}
}

// named is an object that a program can name.
type named interface{ nameField() *string }

func getName[T named](find func(*args, int) T) handler {
	return func(p *Process, a *args) error {
		a.setInt(2, a.setText(1, *find(a, 0).nameField(), p.abi.limits.objectName))
		return nil
	}
}

func setName[T named](find func(*args, int) T) handler {
	return func(p *Process, a *args) error {
		*find(a, 0).nameField() = clip(a.text(1), p.abi.limits.objectName-1)
		return nil
	}
}
