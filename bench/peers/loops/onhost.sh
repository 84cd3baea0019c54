#!/bin/sh
# onhost.sh HOST COMMAND...: runs a command on a host of a lab (a network namespace), under
# the name of the host, as if by ssh: launchers take it for their remote shell. They
# put options before the host, which are for ssh, and may give the command as one word.
# Without a name of its own a host would pass for the machine, and ranks of different
# hosts for neighbors.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; eval "exec $*"' "$host" "$@"
