//go:build !linux

package doctor

import (
	"context"
	"fmt"
	"io"
)

func tryProcessVM(context.Context, []string) string {
	return "there is no process_vm_readv on this system"
}

// Role fails: the doctor starts no processes on this system.
func Role(name string, _ io.Reader, out io.Writer) int {
	fmt.Fprintf(out, "there is no role %q on this system\n", name)
	return 1
}
