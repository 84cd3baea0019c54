package cbinding

// Functions are the functions of package mpi that the C interface calls. A comm is a *mpi.Comm,
// a world a *mpi.World.
type Functions struct {
	// NewWin creates a window of bytes. All ranks of comm call it.
	NewWin func(comm any, cfg WinConfig) (Win, error)
	// OpenFile opens a file with the flags of os.OpenFile; hints is an mpi.FileHints. All ranks of comm
	// call it.
	OpenFile func(comm any, name string, flag int, hints any) (File, error)
	// Direct returns the direct path of comm, and whether its short messages need not pass package
	// mpi.
	Direct func(comm any) (d Direct, ok bool)
	// Profile returns a function to be called before each call: it tells the profile and check mode
	// of world the name of the function of C and the address to which it returns. The result is nil
	// if the job has neither.
	Profile func(world any) func(name string, site uintptr)
	// Message returns the *mpi.Comm for a message in check mode: errors name the function of C, the
	// datatype and the place to which it returns. Messages of the same datatype match, and all match
	// one without.
	Message func(comm any, name, datatype string, site uintptr) any
	// Checks reports whether world is in check mode.
	Checks func(world any) bool
	// Program returns the number of the program of this rank among those of the job.
	Program func(world any) int
	// Spawns reports whether the launcher of world starts programs for its ranks.
	Spawns func(world any) bool
}

// registered is written once, while package mpi is initialized, and only read after that.
var registered Functions

// Register stores the functions of package mpi. The result lets a variable declaration call it.
func Register(f Functions) bool {
	registered = f
	return true
}

// Get returns the functions of package mpi.
func Get() *Functions { return &registered }
