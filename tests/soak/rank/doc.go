// Rank is a rank of a random program (package program), for jobs under faults.
package main
