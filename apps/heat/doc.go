// Package heat computes how a square plate cools whose edges are kept cold. An implicit
// method (Crank and Nicolson) allows long time steps, but each is a system of linear
// equations, solved by conjugate gradients.
//
// The ranks form a grid, and each has a rectangle of the plate. An iteration needs the
// values next to the rectangle, and two sums over all ranks. A persistent neighborhood
// collective with layouts exchanges the four edges in one call, while the rank computes the
// points inside, which do not need them.
package heat
