package main

// The text of muster run --help.

// runTemplate is the order of the text: what users look up first, then what they read once.
const runTemplate = `{{.Short}}

Usage:
  {{.UseLine}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}

Examples:
{{.Example}}

{{.Long}}
`

const runHelp = `run starts PROG as several processes, the ranks of one job, and waits for them.

Flags of run come before PROG; everything after PROG is passed to the program. A
PROG without a slash is searched in PATH. PROG can be a Go program that uses
Muster, a C or Fortran program built for MPICH or Open MPI, or any command. If such a program,
or a script or interpreter, needs libmpich.so.12 or libmpi.so.40, the ranks load Muster's
(make cabi); --own-mpi lets them load the one that is installed.

Without -n, run starts a rank for each core that this process may use: those of its
affinity mask, limited by the CPU quota of its cgroup.

Several programs, separated by ":", are one job (MPMD). Each needs -n, and ranks are
numbered program by program. Flags before the first program are for the whole job; a
later program may have its own -n, --wdir and --env.

Rank 0 receives the standard input. Output is printed line by line, labelled with
the rank if there is more than one. Progress displays that end their line with a
carriage return are printed as they come. --output DIR writes the output of rank 3 to
DIR/rank-3.out and DIR/rank-3.err instead.

If a rank fails, the calls of the other ranks return an error that names it, and
the ranks can exit by themselves. When for half a second (longer if many ranks
share a core) no rank has noticed the failure or exited, run kills the remaining
ranks; --grace sets a fixed time instead. The exit status is that of the first rank
that failed, or 128 + the number of the signal that killed it.

--spares K starts K processes more, which wait, asleep, in mpi.Recover and take the places of
ranks that fail; MUSTER_ON_FAILURE is then return. The program sees a world without them.
On several hosts they get slots that the ranks leave: first on hosts without ranks, and as
evenly as possible.

--respawn K starts a process in place of a rank that fails, at most K times, when the others
have come to mpi.Recover: on the same host or, if that was lost, on another one of the job.
Spares, if there are any, are used first. Nothing runs before that but the ranks.

run forwards SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 to the ranks; a second
SIGINT kills them. SIGQUIT (Ctrl-\) prints which rank waits for which; a second
SIGQUIT is forwarded, and Go programs print their stacks.

--timeout ends a job that takes too long: run prints which rank waits for which, and
exits with status 124.

run sets GOMAXPROCS of each rank to its share of the cores, unless it is set already.
With --bind-to core, a rank runs only on its share of the cores; with socket or numa, on
all cores of the sockets or NUMA nodes of its share. --report-bindings prints the result.
Consecutive ranks get neighboring cores; --map-by socket or numa assigns them to the
sockets or NUMA nodes in turn, and --map-by node to the hosts in turn, which is the same
as slot on one host. --map-by traffic=TRACE reads a trace of the same number of ranks, and
puts ranks that send each other much on the same host.

--profile prints one screen when the job ends: the time in calls, the call sites with
the most of it, and the messages. --profile full adds messages by length and protocol,
communication memory by purpose, connections, and traffic between ranks.
--profile FILE.json writes it to a file instead, and --profile FILE.html as a page with
a communication matrix, the waits over time, and the hidden share of transfers. --profile arrivals shows, for each
call site, when the ranks reached its collectives and how far apart they were;
--profile arrivals:FILE.svg also draws the most imbalanced calls.

--trace FILE.json writes the calls of all ranks, with their times and messages, for the
Perfetto UI and muster trace; .json.gz compresses it. MUSTER_TRACE_LIMIT bounds it.

--metrics ADDR serves the counters of all ranks at http://ADDR/metrics while the job
runs: messages, bytes, wait time, retransmissions, memory and processor time. Whoever
reaches the address can read them.

On several hosts (--hosts, --hostfile), run assigns ranks in blocks, host by host.
Without -n it uses all slots; hosts without a slot count share the ranks evenly. run
starts a muster agent on each host through ssh, which must not ask for a password,
or through another command (--rsh). No port is opened for this. muster, the program
and the working directory must have the same paths on all hosts; with --copy the hosts
get the program, but not its libraries and data, from here. Remote ranks get
the local MUSTER_..., GO..., PATH and LD_LIBRARY_PATH variables and those given by
--env. Without --hosts and --hostfile, run reads the host file named by
HYDRA_HOST_FILE or OMPI_MCA_orte_default_hostfile, or uses the hosts that a batch system
has allocated: SLURM_JOB_NODELIST, or the file named by PBS_NODEFILE.
With more than --tree-width hosts, hosts start agents on further hosts, so ssh must
also work between the hosts.`

const runExamples = `  muster run -n 8 ./prog
  muster run ./prog                            a rank for each core
  muster run -n 4 --bind-to none ./prog --its-own-flag
  muster run -n 1 ./server : -n 3 ./client     two programs in one job
  muster run -n 4 --timeout 10m --output logs ./prog
  muster run -n 4 --stuck-after 10s ./prog     report a stuck job after 10 seconds
  muster run -n 4 --stuck-after 10s --on-stuck end ./prog   and end it
  muster run --hosts a:4,b:4,c:4 -n 8 --spares 4 ./prog   replace ranks that fail
  muster run -n 8 --respawn 2 ./prog           start processes in place of ranks that fail
  muster run -n 3 hostname                     any command
  muster run -n 4 ./cprog                      a program built for MPICH or Open MPI, on Muster
  muster run -n 2 sh -c 'echo $PMI_RANK'
  muster run -n 4 --profile ./prog             print a summary at the end
  muster run -n 4 --trace job.json ./prog && muster trace job.json
  muster run -n 4 --pprof profiles ./prog && go tool pprof -top profiles/rank-0.pprof
  muster run -n 4 --metrics localhost:9100 ./prog
  muster run --hosts a:4,b:4 ./prog            eight ranks on two hosts
  muster run --hostfile hosts -n 6 ./prog      lines such as "a:4" or "a slots=4"
  muster run --hosts a:4,b:4 -n 6 --map-by node ./prog
  muster run --hosts h1,h2 -n 4 --rsh 'ip netns exec {host}' ./prog
  muster run --lab -n 16 ./prog                on the hosts of muster lab; --lab NAME: of another
  muster run --hosts a,b --env OMP_NUM_THREADS=1 --env HOME ./prog`
