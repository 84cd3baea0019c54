// Package launch starts the ranks of a job, watches over them and ends them
// together: what `muster run` does, and `muster agent` on other hosts.
//
// [Run] makes the job and its backend, which starts the processes, and then owns
// the job in one loop that takes events: a rank has started, ended, joined,
// aborted; a host was lost; a signal has come; time has passed. The files:
//
//	config.go    what to run
//	run.go       from Config to the end of the job
//	job.go       the loop: deaths, signals, the exit status
//	backend.go   what a backend is; local.go is the one for this machine
//	crew.go      the ranks of one machine; fork.go starts their processes
//	cores.go     which rank runs on which cores, GOMAXPROCS, cgroup quota
//	env.go       what ranks find in their environment
//	output.go    lines of all ranks into one stream, never mixed
//	stuck.go     who waits for whom, from the board
//	startup.go   which stage of a start takes too long
//
// For several hosts:
//
//	hosts.go     host lists, and which ranks go where
//	rsh.go       the command that reaches a host
//	tree.go      who starts whose agent
//	remote.go    the backend, on the launcher's side
//	branch.go    an agent that was started from here, by launcher or agent
//	agent.go     the agent; agent_job.go what it does with its ranks
//	frame.go     what they say to each other; frame_state.go about ranks
//	link.go      how the frames travel; flow.go what holds them back
//
// Start with run.go for a local job, with remote.go and agent.go for one on hosts.
package launch
