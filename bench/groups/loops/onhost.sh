#!/bin/sh
# onhost.sh HOST COMMAND...: runs a command on a host of a lab (a network namespace), under
# the host name of the host. Launchers use it as their remote shell. They put options for
# ssh before the host, and may pass the command as one word. With the name of the
# machine, launchers would treat ranks of different hosts as ranks of one host.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; eval "exec $*"' "$host" "$@"
