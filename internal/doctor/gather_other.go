//go:build !linux

package doctor

// gatherSystem collects little: most facts are specific to Linux.
func gatherSystem(f *Facts) {
	f.Identity = f.Hostname
	f.Limits = Limits{Files: -1, FilesMax: -1, Processes: -1, Locked: -1}
	f.Limits.Files, f.Limits.FilesMax = openFiles()
}
