// Package channels tests messages between hosts under adverse conditions: packet loss, a
// stopped receiver, many senders to one receiver, rails that go down, a killed rank. The
// hosts are network namespaces (internal/lab); the ranks are real processes of a program
// that checks every byte and the order of all messages (storm).
package channels
