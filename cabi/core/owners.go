package core

// Objects with error handlers and attributes whose calls are in other files.

// fileNull is MPI_FILE_NULL, whose error handler is that of files which are not open yet
// (MPI-4.1 section 14.7).
type fileNull struct{ handler *errhandler }

func (f *fileNull) errhandler() *errhandler    { return f.handler }
func (f *fileNull) self() (handle, uintptr)    { return 0, 0 }
func (f *fileNull) handlerField() **errhandler { return &f.handler }
