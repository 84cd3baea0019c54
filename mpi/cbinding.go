package mpi

// Access for the C interface.

import "github.com/muster-mpi/muster/internal/cbinding"

var _ = cbinding.Register(cbinding.Functions{
	NewWin: func(comm any, cfg cbinding.WinConfig) (cbinding.Win, error) { return newByteWin(comm.(*Comm), cfg) },
	OpenFile: func(comm any, name string, flag int, hints any) (cbinding.File, error) {
		f, err := comm.(*Comm).OpenFile(name, flag, hints.(FileHints))
		if err != nil {
			return nil, err
		}
		return &byteFile{f, f.FileView.v}, nil
	},
	Direct: func(comm any) (d cbinding.Direct, ok bool) {
		c := comm.(*Comm)
		if c.w.cfg.Check || c.w.watch.on || c.IsInter() {
			return d, false
		}
		return cbinding.Direct{Progress: c.e, Context: c.pt.Ctx, Ranks: c.ranks}, true
	},
	Profile: func(world any) func(string, uintptr) {
		w := world.(*World)
		if t := w.watch.tracer; t != nil {
			t.fromC.Store(true)
		}
		if p := w.watch.calls; p != nil {
			p.fromC.Store(true)
			if !w.cfg.Check {
				return p.enter
			}
			return func(name string, pc uintptr) { p.enter(name, pc); w.check.enter(name, pc) }
		}
		if w.cfg.Check {
			return w.check.enter
		}
		return nil
	},
	Message: func(comm any, name, datatype string, pc uintptr) any { return comm.(*Comm).fromC(name, datatype, pc) },
	Checks:  func(world any) bool { return world.(*World).cfg.Check },
})
