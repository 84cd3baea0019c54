//go:build !race

package launch

const slow = 1
