package groups

import (
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
)

// messageStudy is T1 tables 5.1 and 5.4, and P3 figures 5 to 12 with tables 1 and 2: what
// applications send, from which buffers, and what the eager channel needs for it.
func messageStudy() *study {
	alone := func(title string, value func(a *studyApp, r *appRun) float64) studyFigure {
		return studyFigure{title: title, value: value, alone: true}
	}
	mean := func(name prof.Name) func(*studyApp, *appRun) float64 {
		return func(a *studyApp, r *appRun) float64 { return r.Counters[name].Sum / float64(a.ranks) }
	}
	most := func(name prof.Name) func(*studyApp, *appRun) float64 {
		return func(_ *studyApp, r *appRun) float64 { return r.Counters[name].Max }
	}
	st := &study{
		name: "study-messages", title: "Messages and buffers of applications (T1 tables 5.1 and 5.4, P3 tables 1 and 2)",
		env:      []string{"MUSTER_NETWORK=iwarp", "MUSTER_NO_SHARED_MEMORY=true", "MUSTER_CHANNEL=rc", "MUSTER_STRICT=true", "MUSTER_EAGER=rings", "MUSTER_PROFILE=text"},
		settings: []setting{{"ARDMA-SRQ", nil}},
		figures: []studyFigure{
			alone("peers with a ring (mean)", mean(prof.Name(rdma.PeersRinged))),
			alone("low-watermark events that added buffers (mean)", mean(prof.ReceiveGrown)),
			alone("unexpected messages (%)", func(_ *studyApp, r *appRun) float64 {
				return share(r, prof.MessagesUnexpected, prof.MessagesReceived)
			}),
			alone("messages", func(_ *studyApp, r *appRun) float64 { return r.Counters[prof.MessagesSent].Sum }),
			alone("time in MPI (%)", func(_ *studyApp, r *appRun) float64 { return r.InMPI / r.Seconds * 100 }),
			alone("messages below 128 B (%)", func(_ *studyApp, r *appRun) float64 { m, _ := r.sharesBelow(128); return m }),
			alone("messages below 2 KB (%)", func(_ *studyApp, r *appRun) float64 { m, _ := r.sharesBelow(2 << 10); return m }),
			alone("volume below 8 KB (%)", func(_ *studyApp, r *appRun) float64 { _, v := r.sharesBelow(8 << 10); return v }),
			alone("uses of the buffer that is used most", most(prof.BuffersMostUses)),
			alone("its length (B)", most(prof.BuffersMostBytes)),
			alone("short messages from a buffer used before (%)", func(_ *studyApp, r *appRun) float64 {
				return share(r, prof.BuffersReused, prof.BuffersSent)
			}),
			alone("frequently used buffers (%)", func(_ *studyApp, r *appRun) float64 {
				return share(r, prof.BuffersFrequent, prof.BuffersKnown)
			}),
		},
		note: `Sixteen ranks, connections that check registration, with shared receive buffers and rings. Collectives count as their messages. A buffer is frequently used if registration
pays by the costs measured on this device; buffers of less than 128 bytes do not count.`,
		differs: `the document ran class B or C on 64 processes, here classes that take a second on two cores. Our device is software, on which registration of a short buffer rarely pays.`,
	}
	for _, a := range []struct{ name, class string }{{"cg", "S"}, {"mg", "S"}, {"lu", "S"}, {"ft", "S"}, {"is", "S"}, {"bt", "S"}, {"sp", "S"}, {"radix", "S"}, {"nbody", "S"}} {
		st.apps = append(st.apps, studyApp{name: a.name, class: a.class, ranks: 16})
	}
	return st
}

// sharesBelow returns the shares in per cent of messages, and of their bytes, that are shorter.
func (r *appRun) sharesBelow(bytes uint64) (messages, volume float64) {
	var short, all, shortBytes, allBytes float64
	for _, s := range r.Sizes {
		all, allBytes = all+float64(s.Messages), allBytes+float64(s.Bytes)
		if s.To < bytes {
			short, shortBytes = short+float64(s.Messages), shortBytes+float64(s.Bytes)
		}
	}
	return short / all * 100, shortBytes / allBytes * 100 // NaN if there is none: not shown
}
