//go:build race

package launch

// Programs built with the race detector start slowly: bounds are wider.
const slow = 4
