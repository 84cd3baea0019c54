package mpi

import "runtime/debug"

// protocol is the version of everything that ranks exchange: the launcher's values,
// packets, the layout of shared memory, collective headers. A change that an older rank
// would misread adds one. Ranks with different protocols do not start (decision 070).
const protocol = 2

// release is the version of a release, which the linker sets (make release). Otherwise Go
// has recorded one.
var release string

const modulePath = "github.com/muster-mpi/muster"

// Version returns the version of the library that this program was built with, as Go
// records it: "v0.2.0" for a release, a pseudo-version with the commit for other builds,
// "(devel)" if the build did not record one.
func Version() string {
	if v := recordedVersion(); v != "" {
		return v
	}
	return "(devel)"
}

// recordedVersion is Version, or "" if it is not recorded.
func recordedVersion() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	version := ""
	if info.Main.Path == modulePath {
		version = info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path != modulePath {
			continue
		}
		version = dep.Version
		if dep.Replace != nil {
			version = dep.Replace.Version // "" for a folder
		}
	}
	if version == "(devel)" {
		return ""
	}
	return version
}
