package main

// muster explain COLLECTIVE --json.

import (
	"io"
	"math"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// collectiveInfo is the choice for a call of a collective, or for each range of sizes.
type collectiveInfo struct {
	Collective string         `json:"collective"`
	Ranks      int            `json:"ranks"`
	Nodes      int            `json:"nodes"`
	Rails      int            `json:"rails"`
	Device     string         `json:"device"`
	Startup    float64        `json:"message_seconds"`
	PerByte    float64        `json:"seconds_per_byte"`
	Copy       float64        `json:"copy_seconds_per_byte"`
	Reduce     float64        `json:"combine_seconds_per_byte"`
	Choices    []choiceInfo   `json:"choices"`
	Shared     []hostFormInfo `json:"shared_memory"` // what blocking calls use instead, within a host
}

// choiceInfo is the choice for the sizes from From to To.
type choiceInfo struct {
	From   int             `json:"from"`
	To     int             `json:"to,omitempty"` // 0: any
	Reason string          `json:"reason"`
	Chosen algorithmCost   `json:"chosen"`
	Others []algorithmCost `json:"others"`
}

type algorithmCost struct {
	Algorithm string  `json:"algorithm"`
	Seconds   float64 `json:"seconds"` // estimated
}

type hostFormInfo struct {
	Form string `json:"form"`
	UpTo int    `json:"up_to,omitempty"` // bytes; 0: any
	Why  string `json:"why_not,omitempty"`
}

func explainAsJSON(w io.Writer, c *mpi.Comm, kind coll.Kind, size, ranks int) error {
	ask, n := planAsker(c, kind, ranks)
	x, err := ask(max(size, 0))
	if err != nil {
		return err
	}
	info := collectiveInfo{Collective: kind.String(), Ranks: n, Nodes: x.Nodes, Rails: x.Rails, Device: inspect.DeviceName(c, c.Size()-1),
		Startup: x.Startup, PerByte: x.PerByte, Copy: x.Copy, Reduce: x.Reduce}
	list := []sizeRange{{max(size, 0), max(size, 0), x}}
	if size < 0 && kind != coll.Barrier {
		if list, err = sizeRanges(kind, ask); err != nil {
			return err
		}
	}
	cost := func(o inspect.CollectiveChoice) algorithmCost { return algorithmCost{choiceName(kind, o), o.Seconds} }
	for _, r := range list {
		one := choiceInfo{From: r.from, To: r.to, Reason: r.plan.Reason, Chosen: cost(r.plan.CollectiveChoice), Others: []algorithmCost{}}
		if r.to == math.MaxInt {
			one.To = 0
		}
		for _, o := range r.plan.Others {
			one.Others = append(one.Others, cost(o))
		}
		info.Choices = append(info.Choices, one)
	}
	for _, f := range x.Forms {
		one := hostFormInfo{Form: f.Name, UpTo: f.Limit}
		switch f.Limit {
		case -1:
			one.UpTo, one.Why = 0, f.Why
		case math.MaxInt:
			one.UpTo = 0
		}
		info.Shared = append(info.Shared, one)
	}
	return printJSON(w, info)
}
