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
		if c.w.cfg.Check || c.w.watch.on || c.IsInter() || c.w.joins.home != nil { // the front knows one engine
			return d, false
		}
		return cbinding.Direct{Progress: c.e, Context: c.pt.Ctx, Ranks: c.ranks}, true
	},
	Profile: func(world any) func(string, uintptr) {
		w := world.(*World)
		var enter []func(string, uintptr)
		if t := w.watch.tracer; t != nil {
			t.fromC.Store(true)
			enter = append(enter, t.enter)
		}
		if p := w.watch.calls; p != nil {
			p.fromC.Store(true)
			enter = append(enter, p.enter)
		}
		if w.cfg.Check {
			enter = append(enter, w.check.enter)
		}
		switch len(enter) {
		case 0:
			return nil
		case 1:
			return enter[0]
		}
		return func(name string, pc uintptr) {
			for _, f := range enter {
				f(name, pc)
			}
		}
	},
	Message: func(comm any, name, datatype string, pc uintptr) any { return comm.(*Comm).fromC(name, datatype, pc) },
	Checks:  func(world any) bool { return world.(*World).cfg.Check },
	Program: func(world any) int { return world.(*World).programNumber() },
	Spawns:  func(world any) bool { return world.(*World).canSpawn() },
})
