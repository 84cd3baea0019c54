// Package doctor finds the reasons why a job would not start, would hang or would be
// slow, before it runs: on this host, and between several hosts.
//
// Collecting data and judging it are separate. [Facts] are the data of one host (gather.go
// and the files it calls). A [Survey] holds the facts of all hosts and the results of their
// connection trials (survey.go, with session.go on the requesting side, answer.go on the
// other, and trial.go for the packets between hosts). The judgement is a table of checks
// (checks.go): pure functions from a survey to findings, with a line of advice for each
// warning and problem. report.go prints them.
package doctor
