package dtype

import (
	"errors"
	"fmt"
)

// ErrArgument reports invalid arguments of a constructor.
var ErrArgument = errors.New("dtype: invalid argument")

// ErrBounds reports that a layout reaches outside its memory.
var ErrBounds = errors.New("dtype: layout reaches outside the memory")

func argumentError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...))
}

func overflowError(constructor string) error {
	return argumentError("%s: offsets or sizes do not fit 64 bits; check counts, strides and displacements", constructor)
}
