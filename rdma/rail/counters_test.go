package rail

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// counting is a rail that counts.
type counting struct{ *port }

func (counting) Count(add func(rdma.Counter, uint64)) { add(rdma.DatagramsSent, 5) }

func TestCountOfRails(t *testing.T) {
	var c Config
	for _, name := range []string{"eth0", "eth1", "eth2"} {
		p := &port{attr: rdma.Attr{Name: "virtual", Transports: rdma.RD, MaxSend: 60 << 10}}
		r := Rail{Name: name, Device: counting{p}}
		if name == "eth2" {
			r.Device = p // one that does not count
		}
		c.Rails = append(c.Rails, r)
	}
	d, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cq, err := d.NewCQ(0)
	if err != nil {
		t.Fatal(err)
	}
	qp, err := d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		t.Fatal(err)
	}
	defer qp.Close()
	q := qp.(*pair)
	for i := range q.rails {
		q.rails[i].RailCounts = RailCounts{Octets: uint64(100 * (i + 1)), Left: 2, Again: 7}
	}
	d.drops.Doubles = 3
	got := map[rdma.Counter]uint64{}
	d.Count(func(name rdma.Counter, value uint64) { got[name] += value })
	for name, want := range map[rdma.Counter]uint64{
		rdma.DatagramsSent: 10, CountLeft: 6, CountBack: 0, CountAgain: 21, CountTwice: 3,
		CountBytes + "eth0": 100, CountBytes + "eth1": 200, CountBytes + "eth2": 300,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
}
