// Package advise tests muster advise with programs whose problems are known: folder program.
package advise
