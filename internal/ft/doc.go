// Package ft lets the surviving ranks of a communicator agree although ranks die, also
// while they agree. It is pure: the caller delivers messages and reports failures, and
// sends what the package returns.
//
// [Group] is the state of one rank. Each agreement runs along a tree in four passes:
//
//	report   up    flag, known failures and the proposal held, for a whole subtree
//	propose  down  the value that the root has chosen
//	accept   up    the whole subtree holds the proposal
//	decide   down  the value is final: the rank returns
//
// A rank returns as soon as it gets the decision and answers late questions afterwards
// (early returning: Herault 2015). That agreement needs two passes, because it only holds
// among ranks that stay alive. This one is uniform: a rank that has returned a value and
// then died has returned the same value as everyone else, so what it wrote to a file
// before it died is consistent with what the others do. The two further passes are the
// price.
//
// The root is the lowest rank alive, and its number is the ballot. A new root collects
// reports again and must propose the value with the highest ballot that a rank holds, if
// any (as in Lamport 1998). A decision needs that all ranks
// alive hold the value, so every later root finds it.
//
// [Shared] is the state of one rank in agreements of ranks that share memory. They need no
// messages, and are uniform too (shared.go).
//
// Failures must be true: a rank that is reported as failed takes no further step that
// others see. They need not be reported at the same time, and for [Group] not in the same
// order.
package ft
