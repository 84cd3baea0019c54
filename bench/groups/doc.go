// Package groups measures Muster against Open MPI, MPICH and libfabric driven bare on
// this machine, and techniques of Muster against its own plain protocols. A group is a
// table: the figures that one run of each contender yields. Commands bench/peers and
// "muster bench report" measure groups.
//
// The loops in C (loops) are part of the program. They are built with the compiler
// wrapper of each library. For each group and each round, the package waits for a quiet
// machine, measures the hand-over of a cache line between two cores, and runs every
// contender once; the contender that begins changes from round to round. Only figures of
// the same round are compared. A run that hangs is killed and counted.
//
// Files: plan.go and plan_*.go list the groups and their claims; session.go selects and measures them;
// build.go builds the programs and command.go their command lines; quiet.go and hop.go
// observe the machine; run.go runs one command; summary.go computes medians and ratios;
// report.go makes tables and picture.go charts. Studies are tables too, of applications with
// a technique and without it: study_plan.go lists them, study.go runs them and
// study_table.go makes their tables and pictures.
package groups
