// Package channels tests what carries messages between hosts when the network or the
// ranks behave badly: packets are lost, a receiver is stopped, everybody sends to one,
// a rank is killed. The hosts are network namespaces (internal/lab), the ranks real
// processes of a program that checks every byte and the order of all messages (storm).
package channels
