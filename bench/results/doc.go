// Package results keeps measurements and the page that summarizes them.
//
// A [Run] is what one command measured: a JSON file under docs/results, with date, commit,
// machine, command line and tables. A [Table] has figures and the conditions they were measured
// under. Command bench/peers, "muster bench report" and "muster bench study" write runs.
//
// Each [TablePage] under docs/results shows tables as they were measured last.
//
// The page docs/results.md is rendered from the claims of the groups (package
// bench/groups) and the tables. A [Claim] names its table, rows, column and threshold, so
// every figure and every "met" or "missed" on the page is computed. A figure that is missing or not
// finite is "not measured". A test renders the page again from the committed tables
// and compares it byte by byte.
//
// A [Report] has the same claims for a machine of the user: report.go judges them,
// compare.go compares with an earlier report, html.go and bars.go draw the page.
package results
