// Package launch starts the ranks of a job, watches over them and ends them
// together: what `muster run` does.
//
// [Run] makes the job's [pmi.Server] and [pmi.Board], lets a backend start the
// processes, and then owns the job in one loop that takes events: a rank has
// ended, joined, aborted; a signal has come; time has passed. The files:
//
//	config.go   what to run
//	run.go      from Config to started ranks, and the end of it
//	job.go      the loop: deaths, signals, the exit status
//	backend.go  what a backend is; local.go is the one for this machine
//	cores.go    which rank runs on which cores, GOMAXPROCS, cgroup quota
//	output.go   lines of all ranks into one stream, never mixed
//	stuck.go    who waits for whom, from the board
package launch
