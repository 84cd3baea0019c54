package p2p

// Scripts: testdata/*.txt. A script is a list of commands, each followed by ---- and its
// output; `go test -run Script -rewrite` updates the output, to be reviewed as a diff.
// Message n (by the number of its operation) consists of the n-th letter.
//
//	ranks N [eager=8] [segment=4] [credit=…] [rendezvous=get] [speculate=auto] [slow] [localkeys] [sendonly] [transfer=…]
//	send FROM TO [tag=0] [len=0] [ctx=0] [sync]
//	recv AT [src=any] [tag=any] [len=0] [ctx=0] [early]
//	offer N                     receive N sends an RTR if it may; recv … early does both
//	probe AT [src=any] [tag=any] · mprobe … · mrecv AT [len=0]
//	take FROM->TO               a slow device accepts a request
//	deliver FROM->TO [I]        the first packet in flight, or packet I
//	drop FROM->TO · dup FROM->TO
//	complete RANK OP [bad]      a work request completes
//	deliver-all                 all possible events
//	cancel N · fail RANK [link=PEER] · refuse RANK
//	lose N                      the device fails to send an inline packet of operation N
//	status

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

var rewrite = flag.Bool("rewrite", false, "write the present output into the scripts")

func TestScript(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file, nil) })
	}
}

// runScript runs a script; seen is called with every event.
func runScript(t *testing.T, file string, seen func(x *Xfer, ev Event)) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sc := &script{seen: seen}
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimRight(string(text), "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		head, _, isCommand := strings.Cut(block, "\n----")
		out.WriteString(head + "\n")
		if !isCommand {
			continue // a paragraph of explanation
		}
		out.WriteString("----\n")
		lines := strings.Split(head, "\n")
		out.WriteString(sc.command(lines[len(lines)-1]))
	}
	if got := out.String(); got != string(text) {
		if *rewrite {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Fatalf("%s: the conversation differs (go test -run Script -rewrite shows how in the file):\n%s", file, firstDifference(got, string(text)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d is\n\t%s\nwant\n\t%s", i+1, g[i], strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""))
		}
	}
	return "lines are missing"
}

// script is a running script.
type script struct {
	w     *world
	ops   []*Xfer // by operation number - 1
	ranks []int   // rank of each operation
	taken map[int]*Msg

	credit bool // status shows the credit
	out    strings.Builder
	args   map[string]string
	words  []string
	seen   func(x *Xfer, ev Event)
}

func (sc *script) printf(format string, args ...any) { fmt.Fprintf(&sc.out, format+"\n", args...) }

// command executes a line and returns its output.
func (sc *script) command(line string) (out string) {
	sc.out.Reset()
	fields := strings.Fields(line)
	sc.words, sc.args = nil, map[string]string{}
	for _, f := range fields[1:] {
		if k, v, ok := strings.Cut(f, "="); ok {
			sc.args[k] = v
		} else {
			sc.words = append(sc.words, f)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			out = fmt.Sprintf("error: %v\n", p)
		}
	}()
	do, ok := commands[fields[0]]
	if !ok {
		return "error: unknown command\n"
	}
	do(sc)
	if sc.w.fault != "" {
		sc.printf("the device saw: %s", sc.w.fault)
	}
	if sc.out.Len() == 0 {
		return "ok\n"
	}
	return sc.out.String()
}

var commands = map[string]func(*script){
	"ranks": (*script).makeRanks, "send": (*script).send, "recv": (*script).recv, "offer": (*script).offer,
	"probe": (*script).probe, "mprobe": (*script).mprobe, "mrecv": (*script).mrecv,
	"take": (*script).take, "deliver": (*script).deliver, "drop": (*script).drop, "dup": (*script).dup,
	"complete": (*script).complete, "deliver-all": (*script).deliverAll, "cancel": (*script).cancel,
	"fail": (*script).fail, "refuse": (*script).refuse, "lose": (*script).lose, "status": (*script).status,
}

func (sc *script) has(word string) bool {
	for _, w := range sc.words {
		if w == word {
			return true
		}
	}
	return false
}

// number returns argument key, or word i.
func (sc *script) number(key string, def int) int {
	v, ok := sc.args[key]
	if !ok {
		return def
	}
	if v == "any" {
		return -1
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		panic(err)
	}
	return n
}

func (sc *script) word(i int) int {
	n, err := strconv.Atoi(sc.words[i])
	if err != nil {
		panic(err)
	}
	return n
}

// pair is FROM->TO.
func (sc *script) pair() (from, to int) {
	if _, err := fmt.Sscanf(sc.words[0], "%d->%d", &from, &to); err != nil {
		panic(err)
	}
	return from, to
}

func (sc *script) makeRanks() {
	attr := testAttr(sc.number("segment", 4))
	attr.LocalKeys, attr.MaxTransfer = sc.has("localkeys"), sc.number("transfer", 0)
	if sc.has("sendonly") {
		attr.Ops = rdma.Ops(rdma.OpSend)
	}
	cfg := Config{EagerLimit: sc.number("eager", 8), Credit: int64(sc.number("credit", 0)), Rendezvous: sc.args["rendezvous"],
		Speculate: sc.args["speculate"]}
	sc.w = newWorld(sc.word(0), cfg, attr, 1<<12)
	sc.w.slow = sc.has("slow")
	sc.w.done = func(_ int, x *Xfer) { sc.ended(x) }
	sc.w.log = sc.printf
	sc.ops, sc.ranks, sc.taken, sc.credit = nil, nil, map[int]*Msg{}, cfg.Credit != 0
	for _, n := range sc.w.nodes {
		n.m.observe = sc.seen
	}
	for _, c := range sc.w.nodes[0].links[0].Choices() {
		if c.Hi == MaxSize {
			sc.printf("from %d bytes: %s", c.Lo, c.Protocol)
		} else {
			sc.printf("%d to %d bytes: %s", c.Lo, c.Hi, c.Protocol)
		}
	}
}

func (sc *script) op(rank int) *Xfer {
	x := sc.w.nodes[rank].m.New()
	x.Owner = &Waiter{}
	x.Ctx = uint32(sc.number("ctx", 0))
	x.Buf = sc.w.nodes[rank].mem.buffer(sc.number("len", 0))
	sc.ops, sc.ranks = append(sc.ops, x), append(sc.ranks, rank)
	return x
}

func (sc *script) send() {
	from, to := sc.word(0), sc.word(1)
	x := sc.op(from)
	x.Link, x.Source, x.Tag, x.Send = sc.w.nodes[from].links[to], int32(from), int32(sc.number("tag", 0)), true
	if sc.has("sync") {
		x.Mode = Synchronous
	}
	for i := range x.Buf {
		x.Buf[i] = 'a' + byte(len(sc.ops)-1)
	}
	sc.w.nodes[from].m.Send(x)
	sc.w.settle(from)
}

func (sc *script) recv() {
	at := sc.word(0)
	x := sc.op(at)
	x.Source, x.Tag = int32(sc.number("src", -1)), int32(sc.number("tag", -1))
	if x.Source != AnySource {
		x.Link = sc.w.nodes[at].links[x.Source]
	}
	sc.w.nodes[at].m.Recv(x)
	if sc.has("early") {
		sc.w.nodes[at].m.Offer(x)
	}
	sc.w.settle(at)
}

func (sc *script) offer() {
	i := sc.word(0) - 1
	sc.w.nodes[sc.ranks[i]].m.Offer(sc.ops[i])
	sc.w.settle(sc.ranks[i])
}

func (sc *script) found(g *Msg) {
	if g == nil {
		sc.printf("nothing")
		return
	}
	sc.printf("source %d, tag %d, %d bytes", g.Source, g.Tag, g.Total)
}

func (sc *script) probe() {
	sc.found(sc.w.nodes[sc.word(0)].m.Look(uint32(sc.number("ctx", 0)), int32(sc.number("src", -1)), int32(sc.number("tag", -1))))
}

func (sc *script) mprobe() {
	at := sc.word(0)
	g := sc.w.nodes[at].m.Take(uint32(sc.number("ctx", 0)), int32(sc.number("src", -1)), int32(sc.number("tag", -1)))
	if g != nil {
		sc.taken[at] = g
	}
	sc.found(g)
}

func (sc *script) mrecv() {
	at := sc.word(0)
	x := sc.op(at)
	sc.w.nodes[at].m.Claim(x, sc.taken[at])
	sc.w.settle(at)
}

func (sc *script) take() {
	from, to := sc.pair()
	sc.w.take(from, to)
	sc.w.settle(from)
}

func (sc *script) packet() (from, to, i int) {
	from, to = sc.pair()
	if len(sc.words) > 1 {
		i = sc.word(1)
	}
	if i >= len(sc.w.wire(from, to).inFlight) {
		panic("no such packet")
	}
	return from, to, i
}

func (sc *script) deliver() {
	from, to, i := sc.packet()
	sc.w.deliver(from, to, i)
}

func (sc *script) drop() {
	from, to, i := sc.packet()
	wi := sc.w.wire(from, to)
	sc.printf("lost: %s", FormatPacket(wi.inFlight[i]))
	wi.inFlight = append(wi.inFlight[:i], wi.inFlight[i+1:]...)
}

func (sc *script) dup() {
	from, to, i := sc.packet()
	wi := sc.w.wire(from, to)
	sc.printf("doubled: %s", FormatPacket(wi.inFlight[i]))
	wi.inFlight = append(wi.inFlight, wi.inFlight[i])
}

func (sc *script) complete() {
	rank := sc.word(0)
	for i, k := range sc.w.nodes[rank].work {
		if k.wr.Op.String() != sc.words[1] {
			continue
		}
		if sc.has("bad") {
			sc.w.failWork(rank, i, rdma.StatusFault)
			return
		}
		if !sc.w.ready(rank, i) {
			panic("the other half is not there")
		}
		if status := sc.w.complete(rank, i); status != rdma.StatusOK {
			sc.printf("status: %s", status)
		}
		return
	}
	panic("no such work")
}

func (sc *script) lose() {
	i := sc.word(0) - 1
	sc.w.nodes[sc.ranks[i]].m.HandleCompletion(sc.ops[i].Handle(), rdma.StatusPeerGone, 0)
	sc.w.settle(sc.ranks[i])
}

func (sc *script) deliverAll() { sc.w.drain() }

func (sc *script) cancel() {
	i := sc.word(0) - 1
	switch cancelled, pending := sc.w.nodes[sc.ranks[i]].m.Cancel(sc.ops[i]); {
	case pending:
		sc.printf("op %d waits for the sender", i+1)
	case !cancelled:
		sc.printf("too late")
	}
	sc.w.settle(sc.ranks[i])
}

func (sc *script) fail() {
	rank, err := sc.word(0), errors.New("the peer is gone")
	m := sc.w.nodes[rank].m
	if p := sc.number("link", -1); p >= 0 {
		m.FailLink(sc.w.nodes[rank].links[p], err)
	} else {
		m.Fail(errors.New("the job is broken"))
	}
	sc.w.settle(rank)
}

func (sc *script) refuse() { sc.w.nodes[sc.word(0)].mem.refuse = true }

// ended formats the result of an operation.
func (sc *script) ended(x *Xfer) {
	for i, y := range sc.ops {
		if x != y {
			continue
		}
		what := "recv"
		if x.Send {
			what = "send"
		}
		switch {
		case x.Cancelled:
			sc.printf("op %d %s cancelled", i+1, what)
		case x.Send && x.Err == nil:
			sc.printf("op %d send done", i+1)
		case x.Err == nil || errors.Is(x.Err, ErrTruncated):
			sc.printf("op %d recv done: source %d, tag %d, %q", i+1, x.Source, x.Tag, x.Buf[:x.Len])
			if x.Err != nil {
				sc.printf("op %d error: %v", i+1, x.Err)
			}
		default:
			sc.printf("op %d %s error: %v", i+1, what, x.Err)
		}
	}
}

func (sc *script) status() {
	for i, x := range sc.ops {
		what := "recv"
		if x.Send {
			what = "send"
		}
		sc.printf("op %d: rank %d %s, %s, %s", i+1, sc.ranks[i], what, x.Protocol(), x.Stage())
	}
	for r, n := range sc.w.nodes {
		line := fmt.Sprintf("rank %d: %d messages wait, %d regions registered", r, n.m.CountUnexpected(), len(n.mem.regs))
		for p, l := range n.links {
			if sc.credit && (l.credit != n.m.cfg.Credit || l.consumed != 0) {
				line += fmt.Sprintf("; with rank %d: credit %d, pending %d", p, l.credit, l.consumed)
			}
			if s := l.Stats; s.RTRSent > 0 {
				line += fmt.Sprintf("; RTRs to rank %d: %d used, %d wasted, %d revoked of %d", p, s.RTRUsed, s.RTRWasted, s.RTRRevoked, s.RTRSent)
			}
			if len(l.offers) > 0 || l.Stats.RTRStale > 0 {
				line += fmt.Sprintf("; RTRs from rank %d: %d here, %d stale", p, len(l.offers), l.Stats.RTRStale)
			}
			if l.Err != nil {
				line += fmt.Sprintf("; with rank %d: %v", p, l.Err)
			}
		}
		sc.printf("%s", line)
	}
}
