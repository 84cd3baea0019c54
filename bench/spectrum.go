package bench

// A spectrum of reuse (T1 5.5.1): of a thousand buffers the i-th is used i times. They lie
// back to back, so that neighbours share pages and what one registers helps the next, or
// each begins a page of its own, which is the worst case. Every round uses the buffers that
// are to be used at least that often, so a buffer's uses are spread over the run. The
// number of iterations is that of buffers.

import (
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/rdma"
)

const spectrumBuffers = 1000

func spectrumInTurns(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error {
	buffers := p.Iterations
	if buffers == 0 {
		buffers = spectrumBuffers
	}
	for _, size := range p.Sizes {
		for _, layout := range []struct {
			name   string
			stride int
		}{{"packed", size}, {"paged", (size + pageSize - 1) / pageSize * pageSize}} {
			times, err := spectrumTimes(worlds, size, layout.stride, buffers)
			if err != nil {
				return err
			}
			if _, err := emitGain(worlds, size, layout.name, times, 100, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// spectrumTimes sends all messages of the spectrum.
func spectrumTimes(worlds []*mpi.Comm, size, stride, buffers int) ([]trips, error) {
	mems := make([][]byte, len(worlds))
	for k := range worlds {
		mems[k] = make([]byte, stride*buffers+pageSize)
		fill(mems[k], 1)
		skip := -int(rdma.MemOf(mems[k]).Addr()) & (pageSize - 1)
		mems[k] = mems[k][skip:]
	}
	var order []int // of buffers, round by round
	for round := range buffers {
		for b := round; b < buffers; b++ {
			order = append(order, b)
		}
	}
	links := make([]byte, size)
	if _, err := roundTrips(worlds, size, 10, func(int, int) []byte { return links }); err != nil {
		return nil, err
	}
	return roundTrips(worlds, size, len(order), func(k, i int) []byte { return mems[k][order[i]*stride:][:size] })
}
