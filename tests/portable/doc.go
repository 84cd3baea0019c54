// Package portable tests the portable path (decision 072) between hosts: network namespaces
// with a switch between them. The tests need root, iproute2 and a build with the tag
// muster_portable.
package portable
