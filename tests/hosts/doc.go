// Package hosts tests jobs on several hosts: network namespaces with a switch between
// them, real processes under muster run, and libfabric between hosts. The tests need
// root, iproute2 and a build with the tag ofi.
package hosts
