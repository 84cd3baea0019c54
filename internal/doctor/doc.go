// Package doctor finds out why a job would not start, would hang or would be
// slow, before it does: on this host, and between several.
//
// Reading and judging are apart. A [Facts] is what was read on one host
// (gather.go and the files it calls); a [Survey] is the facts of all hosts, and
// what they found when they tried to reach each other (survey.go, with session.go
// on the asking side, answer.go on the other, and trial.go for the packets
// between hosts). The judgement is a table of checks (checks.go), pure functions
// from a survey to findings, each of which that is not fine has a line of advice.
// report.go prints them.
package doctor
