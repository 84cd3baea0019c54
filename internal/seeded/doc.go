// Package seeded gives tests random numbers that can be repeated. A failing test logs its
// seed, and the variable SEED sets it: SEED=7 go test ./mpi -run TestRecoverRandom.
package seeded
