// Package needs finds out which MPI library a program needs, and so for which ABI it was built.
package needs
