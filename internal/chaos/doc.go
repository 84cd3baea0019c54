// Package chaos injects faults into a lab while a job runs on it. Schedule is a pure
// function of a seed; Run carries a schedule out.
//
// Which fault affects which host, when and for how long follows from the seed. What the job
// does at that time, and which single packets are lost, does not.
package chaos
