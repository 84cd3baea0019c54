package mpi

// Conversion between typed slices and bytes, and the check that a type has no pointers.
// The check is made once per type; after that it costs one comparison if a call uses
// the type of the call before, and a map lookup otherwise.

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Elem is the constraint of message elements: any type without pointers. The compiler
// cannot check that, so the first call with a type does, and returns an error of class
// ErrType.
type Elem interface{ any }

// typeCheck caches which types have been checked. Each world has its own.
type typeCheck struct {
	last  atomic.Pointer[byte] // the type that passed last; nil if slow
	slow  bool                 // check mode or hooks: all calls take the general path
	seen  atomic.Pointer[byte] // last for that path
	known sync.Map             // reflect.Type → error or nil
}

// mayTravel reports whether T is the type that passed last; if not, admit decides. Send
// and Recv call it directly: it is inlined there, and bytesOf is not.
func mayTravel[T Elem](t *typeCheck) bool { return t.last.Load() == typeWord((*T)(nil)) }

// bytesOf returns the memory of a slice.
func bytesOf[T Elem](t *typeCheck, s []T) ([]byte, error) {
	// A nil *T in an interface: its type word identifies T, and nothing is allocated.
	if !mayTravel[T](t) {
		if err := admit[T](t); err != nil {
			return nil, err
		}
	}
	return rawBytes(s), nil
}

func admit[T Elem](t *typeCheck) error {
	word := typeWord((*T)(nil))
	if t.seen.Load() == word {
		return nil
	}
	err := t.check(reflect.TypeFor[T]())
	switch {
	case err != nil:
	case t.slow:
		t.seen.Store(word)
	default:
		t.last.Store(word)
	}
	return err
}

func rawBytes[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// elements is the inverse of rawBytes. b begins at an element of a slice of T, or in
// memory that is aligned for every type, and holds whole elements.
func elements[T any](b []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if size == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// addressOf returns the address of the first byte.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// sizeOf returns the size of an element in bytes.
func sizeOf[T any]() int { return int(unsafe.Sizeof(*new(T))) }

func typeWord(v any) *byte {
	return (*struct{ typ, data *byte })(unsafe.Pointer(&v)).typ
}

func (t *typeCheck) check(typ reflect.Type) error {
	if v, ok := t.known.Load(typ); ok {
		if v == nil {
			return nil
		}
		return v.(error)
	}
	var err error
	if path, kind := pointerIn(typ, ""); kind != reflect.Invalid {
		what := "is a " + kind.String()
		if path != "" {
			what = fmt.Sprintf("has a %s in field %s", kind, path)
		}
		err = &pointerError{fmt.Sprintf("%v %s and would be sent as an address that means nothing elsewhere", typ, what)}
	}
	if err == nil {
		t.known.Store(typ, nil)
	} else {
		t.known.Store(typ, err)
	}
	return err
}

// pointerError reports a type with a pointer.
type pointerError struct{ text string }

func (e *pointerError) Error() string { return e.text }

// pointerIn finds the first part of a type that has a pointer.
func pointerIn(t reflect.Type, path string) (string, reflect.Kind) {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return "", reflect.Invalid
	case reflect.Array:
		return pointerIn(t.Elem(), path+"[]")
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if p, k := pointerIn(f.Type, path+"."+f.Name); k != reflect.Invalid {
				return p, k
			}
		}
		return "", reflect.Invalid
	}
	return path, t.Kind()
}

// misalignment returns how far behind a multiple of a block memory begins.
func misalignment(b []byte, block int) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(block))
}
