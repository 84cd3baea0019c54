// Package hosts holds the tests of jobs on several hosts: network namespaces with
// a switch between them, real processes under muster run, libfabric's messages
// from host to host. They need root, iproute2 and a build with tag ofi.
package hosts
