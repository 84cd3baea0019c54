// Soak runs random programs (tests/soak/program) under random faults (muster lab chaos) for
// a time, and prints the seed of each round. A round follows from its seed: hosts, rails,
// ranks, settings, faults, program. It is a violation if a value is wrong, if a job hangs or
// leaves processes behind, or if a call fails for no reason:
//
//	make soak SOAK=30m
//	make soak SEED=12345 ROUNDS=1
package main
