// Package nbody simulates the motion of stars under their gravitation by the algorithm of
// Barnes and Hut, as the application N-BODY of the documents does (T2 4.4.3 and 6.5.3).
//
// A tree divides space into cubes. A star that is far from a cube is attracted by the cube's
// center of mass, so that a step takes n·log n interactions instead of n². Each rank has
// stars that are close together. In a step the ranks gather the boxes in which their stars
// are, with an Allgather of 64 bytes per rank. A rank then knows which cubes of its tree
// every other rank needs, in which detail, and sends them point to point. Such messages are
// irregular: their size is not known to the receiver, who asks with Probe.
package nbody
