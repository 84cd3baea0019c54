#!/bin/sh
# Creates the file system of an image: a program, libfabric, and the shared libraries that
# the two need.
#
#   sh collect.sh PROGRAM FOLDER
set -eu

program=$1
folder=$2

# libfabric is loaded at run time, so ldd does not list it for the program.
fabric=$(ldconfig -p | awk '$1 == "libfabric.so.1" { print $NF; exit }')
if [ -z "$fabric" ]; then
	echo "collect.sh: libfabric.so.1 is not installed (Debian package libfabric1)" >&2
	exit 1
fi

# needed FILE prints the libraries of a file, including the loader, which ldd prints without
# an arrow.
needed() {
	ldd "$1" | awk '$2 == "=>" && $3 ~ "^/" { print $3 } $1 ~ "^/" { print $1 }'
}

mkdir -p "$folder"
install -m 0755 "$program" "$folder/program"
# Mount points of a container runtime, and a directory for temporary files.
mkdir -p "$folder/proc" "$folder/sys" "$folder/dev" "$folder/etc" "$folder/tmp"
chmod 1777 "$folder/tmp"

{ needed "$program"; needed "$fabric"; echo "$fabric"; } | sort -u | while read -r lib; do
	mkdir -p "$folder$(dirname "$lib")"
	cp -L "$lib" "$folder$lib"
done
