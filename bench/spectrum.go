package bench

// A spectrum of reuse (T1 5.5.1): of a thousand buffers the i-th is used i times. They are
// contiguous, so that adjacent buffers share pages and registrations, or each begins at a
// page boundary, which is the worst case. Round r uses the buffers that are used at least r
// times, so the uses of a buffer are spread over the run. The number of iterations is the
// number of buffers.

import (
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/rdma"
)

const spectrumBuffers = 1000

func spectrumAlternating(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error {
	buffers := p.Iterations
	if buffers == 0 {
		buffers = spectrumBuffers
	}
	for _, name := range p.calls() {
		for _, size := range p.Sizes {
			if err := spectrumOf(name, worlds, size, buffers, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

func spectrumOf(name string, worlds []*mpi.Comm, size, buffers int, emit func(int, Result)) error {
	call, err := newReuseCall(name, worlds, size)
	if err != nil {
		return err
	}
	for _, layout := range []struct {
		name   string
		stride int
	}{{"packed", size}, {"paged", (size + pageSize - 1) / pageSize * pageSize}} {
		times, err := call.spectrum(layout.stride, buffers)
		if err != nil {
			return err
		}
		if _, err := call.emitGain(layout.name, times, 100, emit); err != nil {
			return err
		}
	}
	return call.close()
}

// spectrum makes all calls of the spectrum.
func (r *reuseCall) spectrum(stride, buffers int) ([]trips, error) {
	mems := make([][]byte, len(r.worlds))
	for k := range r.worlds {
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
	links := make([]byte, r.size)
	if _, err := r.run(10, func(int, int) []byte { return links }); err != nil {
		return nil, err
	}
	return r.run(len(order), func(k, i int) []byte { return mems[k][order[i]*stride:][:r.size] })
}
