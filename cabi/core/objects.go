package core

import (
	"sync"

	"github.com/muster-mpi/muster/mpi"
)

// objects is the part of Process for groups, info objects, error handlers, attributes, sessions
// and memory.
type objects struct {
	groups   table[mpi.Group]
	empty    *mpi.Group // MPI_GROUP_EMPTY
	origins  origins
	infos    table[info]
	envMade  sync.Once
	envInfo  *info // MPI_INFO_ENV, once envMade
	sessions table[session]

	handlers   table[errhandler]
	handlersMu sync.Mutex // guards the users of error handlers
	standard   standardHandlers
	files      table[file]
	noFile     *fileNull // MPI_FILE_NULL
	dataReps   dataReps

	attrState
	allocated allocations
}

func (o *objects) open() {
	o.groups = newTable[mpi.Group](kindGroup)
	o.infos = newTable[info](kindInfo)
	o.files = newTable[file](kindFile)
	o.sessions = newTable[session](kindSession)
	o.keyvals = newTable[keyval](kindKeyval)
	o.handlers = newTable[errhandler](kindErrhandler)
	o.standard = newStandardHandlers()
	o.noFile = &fileNull{handler: o.standard.returns}
}
