// Package release tests the parts of a release: static binaries, Debian packages and
// checksums that are the same in every build.
package release
