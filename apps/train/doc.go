// Package train trains a small neural network on all ranks: data-parallel stochastic
// gradient descent. Every rank has the whole network and a part of each batch. The gradients
// of all ranks are added with an Iallreduce per layer, started as soon as the backward pass
// has computed the layer, so that the sum of one layer proceeds while the pass computes the
// layers before it.
package train
