package dtype

import (
	"errors"
	"fmt"
)

// ErrArgument says that a layout cannot be built from what was given.
var ErrArgument = errors.New("dtype: invalid argument")

// ErrBounds says that a layout reaches outside the memory it was laid over.
var ErrBounds = errors.New("dtype: layout reaches outside the memory")

func argumentError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...))
}

func overflowError(constructor string) error {
	return argumentError("%s: offsets or sizes do not fit 64 bits; check counts, strides and displacements", constructor)
}
