// Package launch starts the ranks of a job, supervises them and ends them together.
// It implements `muster run`, and `muster agent` on other hosts.
//
// [Run] creates the job and its backend, which starts the processes. One loop then owns
// the job and handles events: a rank has started, exited, joined or aborted, a host was
// lost, a signal arrived, a timer fired. The files:
//
//	config.go      the configuration
//	run.go         from Config to the end of the job
//	job.go         the event loop: failures, the exit status; mailbox.go, roster.go
//	forward.go     signals for the ranks
//	shutdown.go    ends the ranks after a failure; grace.go how long they may run before,
//	               limit.go the time limit
//	programs.go    the programs of a job with several
//	metrics.go     the counters of a running job; log.go the log of its steps
//	backend.go     the backend interface; local.go implements it for this machine
//	crew.go        the ranks of one machine; fork.go starts their processes, poll.go
//	               reads their sockets and output and learns of their exits
//	lifeline.go    a pipe that lets the kernel kill ranks whose launcher is gone
//	cores.go       core binding, GOMAXPROCS and the cgroup quota
//	env.go         the environment of the ranks
//	console.go     where output goes, and what the launcher itself prints
//	output.go      merges the output lines of all ranks into one stream;
//	               outputfiles.go writes them to files
//	stuck.go       reports which rank waits for which, from the board;
//	               stuck_away.go adds the ranks that do not wait
//	startup.go     reports the start-up stage that takes too long
//	spawned.go     jobs that ranks of this one start; names.go the services they publish
//
// For several hosts:
//
//	hosts.go       host lists; nodelist.go those of batch systems
//	layout.go      the assignment of ranks to hosts; spares.go that of spares
//	copy.go        sends programs to the hosts; fetch.go fetches a file of rank 0
//	rsh.go         the command that starts a process on a host
//	tree.go        the tree of agents
//	remote.go      the backend, on the launcher's side; remote_report.go
//	branch.go      an agent started by the launcher or by another agent
//	agent.go       the agent; agent_job.go manages its ranks
//	exitreport.go  the last lines that a remote command printed on stderr
//	frame.go       the messages between launcher and agents; frame_state.go those
//	               about the state of ranks
//	lookups.go     requests for values that wait for an answer
//	report.go      what the ranks of a subtree have reached, in one message; spans.go
//	link.go        sends and receives the messages; flow.go limits the data in transit
//	silence.go     hosts and launchers that do not answer any more; unreachable.go ranks
//	               that do not reach each other
//
// To read the code, start with run.go for a local job, and with remote.go and agent.go
// for a job on several hosts.
package launch
